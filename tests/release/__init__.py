"""What is published, before it is: the wheel, the source archive and the page of the package."""
