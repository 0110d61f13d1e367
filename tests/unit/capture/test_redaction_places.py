"""Where a secret stands gives it away, in files and on command lines of all kinds; ordinary text stays as it is."""

from __future__ import annotations

import pytest

from pytest_agentproc.capture import Redactor

SECRET = "hX7pQ2mZ9tR4"  # noqa: S105  # of this test alone
LOGIN = "bWU6aFg3cFEybVo5dFI0"

PLACES = {
    "netrc": "machine h login me password {}\n",
    "netrc in lines": "machine h\n  login me\n  password {}\n",
    "pgpass": "db.example:5432:app:me:{}\n",
    "curl": "curl -su me:{} https://x\n",
    "curl with a long option": 'curl --user "me:{}" https://x\n',
    "curl, its arguments": "curl\0-u\0me:{}\0https://x",
    "curl, its arguments in JSON": '{{"argv": ["curl", "-u", "me:{}"]}}\n',
    "mysql": "mysql -u root -p{} app\n",
    "sshpass": "sshpass -p {} ssh x\n",
    "sshpass, its arguments": "sshpass\0-p\0{}\0ssh",
    "docker login": "docker login -u me -p {} r.example\n",
    "mongo": "mongosh -u me -p {} app\n",
    "redis-cli": "redis-cli -h x -a {} ping\n",
    "openssl": "openssl rsa -passin pass:{} -in x\n",
    "a pipe": "echo {} | docker login --password-stdin r.example\n",
    "sudo": 'echo "{}" | sudo -S id\n',
    "an option in JSON": '["agent", "--api-key", "{}"]\n',
    "an element of XML": "<Password>{}</Password>\n",
    "an element with attributes": '<wsse:Password Type="x#PasswordText">{}</wsse:Password>\n',
    "an attribute of XML": '<user name="me" password="{}"/>\n',
    "an entry of XML": '<string name="api_key">{}</string>\n',
    "a setting of .NET": '<add key="ApiKey" value="{}"/>\n',
    "a property list": "<key>ApiToken</key>\n  <string>{}</string>\n",
    "a value within a key": '{{"token": {{"value": "{}"}}}}\n',
    "a list": '{{"tokens": ["{}"]}}\n',
    "a name and a value": '{{"name": "API_KEY", "value": "{}"}}\n',
    "a name and a value in YAML": "- name: API_KEY\n  value: {}\n",
    "a pair": '["x-api-key", "{}"]\n',
    "a pair of Python": "('X-Api-Key', '{}')\n",
    "a sentence": "the password is {}\n",
    "a cookie in JSON": '{{"cookie": "sid={}"}}\n',
    "JSON in JSON": '{{"out": "{{\\"token\\": {{\\"value\\": \\"{}\\"}}}}"}}\n',
    "JSON in JSON in JSON": '{{"a": "{{\\"b\\": \\"{{\\\\\\"token\\\\\\": \\\\\\"{}\\\\\\"}}\\"}}"}}\n',
}
"""The places that show a secret that is a word like any other."""

ORDINARY = """\
def login(username: str, password: str) -> bool:
def load(certfile, keyfile=None, password=None):
token = get_token()
token = self.tokens[index]
token, value = get_atom(value[1:])
password = request.form["password"]
password = getpass.getpass("Password: ")
self.access_key = access_key
connect(password=db_password)
auth_token := r.Header.Get("X-Auth-Token")
const token = await fetchToken(user);
let secret = crypto.randomBytes(32);
const [password, setPassword] = useState("");
if (token === null) { return; }
apiKey: process.env.API_KEY,
api_key: Optional[str] = None
constructor(private token: CancellationToken) {}
user.password = bcrypt.hash(password, 10)
authorization = self.headers.get("authorization")
headers = {"Authorization": "Bearer " + token}
curl -H "Authorization: Bearer ${TOKEN}" https://example.com
export TOKEN="$(cat token.txt)"
PASSWORD=$DB_PASSWORD ./run
secret: ${{ secrets.GITHUB_TOKEN }}
<input type="password" name="password" placeholder="Password">
<label for="password">Password</label>
<PasswordInput label="Password" onChange={handleChange} />
{"tokens": {"input": 1234567, "output": 890123}}
{"name": "token_count", "value": 123456}
{"tokens": ["the", "secretary", "wrote"]}
keys = {"name": "token", "value": value}
parser.add_argument("--password", "--passwd", default=None)
the password is required, and the token is base64-encoded
"type": "string", "description": "The password of the user"
docker run -p 8080:8080 -u 1000:1000 nginx:latest
mkdir -p build/output && ssh -p 2222 admin@example.com
curl -u https://example.com/path -o out.html
git push -u origin feature/branch-1
src/main.py:1234:10: E501 line too long
the Basic Multilingual Plane is the basic interface
def bake(env: dict[str, str], cookie: str) -> None:
cookie = response.cookies.get("session")
"""
"""Lines that speak of secrets, and have none."""


@pytest.mark.parametrize("kind", PLACES)
def test_a_secret_is_known_by_where_it_stands(kind: str) -> None:
    """A program prints its settings and its command lines, each in the form of their files."""
    text = PLACES[kind].format(SECRET)
    shown = Redactor().redact_text(text, "stdout")
    assert SECRET not in shown
    assert len(shown) == len(text)
    if kind != "a cookie in JSON":
        assert shown == text.replace(SECRET, "redacted1xxx")


def test_a_login_of_a_registry_is_a_secret_in_base64() -> None:
    """The file of docker has name and password in one word."""
    text = f'{{"auths": {{"r.example": {{"auth": "{LOGIN}"}}}}}}\n'
    assert Redactor().redact_text(text, "stdout") == text.replace(LOGIN, "redacted1".ljust(len(LOGIN), "x"))


@pytest.mark.parametrize("line", ORDINARY.splitlines())
def test_an_ordinary_line_stays_as_it_is(line: str) -> None:
    """Agents print code all day long: a word that is replaced in it is replaced wherever it stands."""
    assert Redactor().redact_text(f"{line}\n", "stdout") == f"{line}\n"
