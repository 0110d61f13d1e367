"""Small programs that call the public programs, each as its own documentation says. Judges nothing."""
