"""Forms of secrets, as data: how programs, shells and files write them. Each text is made anew from a fixed seed.

`«` and `»` stand around the secret. `{a22}` in it is 22 letters and digits, `{h40}` hexadecimal digits, `{u16}`
capitals and digits, `{n8}` digits, `{l10}` small letters and digits. No text of a key stands in this file, so that a
scanner of repositories stays quiet.
"""

from __future__ import annotations

import base64
import html
import json
import random
import re
import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LETTERS = {
    "a": string.ascii_letters + string.digits,
    "h": "0123456789abcdef",
    "u": string.ascii_uppercase + string.digits,
    "n": string.digits,
    "l": string.ascii_lowercase + string.digits,
}

ATTACKED = {
    "netrc line": "machine api.example.com login me password «{a22}»\n",
    "netrc multi": "machine api.example.com\n  login me\n  password «{a22}»\n",
    "netrc default": "default login anonymous password «{a22}»\n",
    "netrc pw first": "machine api.example.com password «{a22}» login me\n",
    "netrc macdef": "machine h\n\tlogin me\n\taccount x\n\tpassword «{a22}»\n",
    "netrc quoted": 'machine h login me password "«{a22}»"\n',
    "curl -u": "$ curl -u admin:«{a22}» https://x.example\n",
    "curl -uJ": "$ curl -uadmin:«{a22}» https://x.example\n",
    "curl -su": "$ curl -su 'admin:«{a22}»' https://x.example\n",
    "curl --user": "$ curl --user admin:«{a22}» https://x.example\n",
    "curl --user=": "$ curl --user=admin:«{a22}» https://x.example\n",
    "curl -u json": '{"command": "curl -u \\"admin:«{a22}»\\" https://x"}\n',
    "curl -u argv list": '{"argv": ["curl", "-u", "admin:«{a22}»", "https://x"]}\n',
    "curl --proxy-user": "curl -x p:3128 --proxy-user bob:«{a22}» https://x\n",
    "curl header": "curl -H 'X-Api-Key: «{a22}»' https://x\n",
    "curl header token": "curl -H 'PRIVATE-TOKEN: «{a22}»' https://x\n",
    "curl -d": "curl -d 'username=me&password=«{a22}»' https://x\n",
    "curl --oauth2": "curl --oauth2-bearer «{a22}» https://x\n",
    "wget": "wget --user=me --password=«{a22}» https://x\n",
    "wget sp": "wget --http-user me --http-password «{a22}» https://x\n",
    "http httpie -a": "http -a admin:«{a22}» https://x\n",
    "xml el": "<server><username>a</username><password>«{a22}»</password></server>\n",
    "xml attr": '<add key="DbPassword" value="«{a22}»"/>\n',
    "xml attr2": '<user name="a" password="«{a22}»"/>\n',
    "xml ns": "<wsse:Password Type='x'>«{a22}»</wsse:Password>\n",
    "xml cdata": "<password><![CDATA[«{a22}»]]></password>\n",
    "xml spaced": "<apiKey>\n   «{a22}»\n</apiKey>\n",
    "xml entity": "&lt;password&gt;«{a22}»&lt;/password&gt;\n",
    "xml in json": '{"t": "<password>«{a22}»</password>"}\n',
    "plist": "<key>password</key><string>«{a22}»</string>\n",
    "json": '{"password": "«{a22}»"}\n',
    "json pretty": '{\n  "a": {\n    "api_key": "«{a22}»"\n  }\n}\n',
    "json in json": '{"t": "{\\"client_secret\\": \\"«{a22}»\\"}"}\n',
    "json^3": '{"t": "{\\"u\\": \\"{\\\\\\"access_token\\\\\\": \\\\\\"«{a22}»\\\\\\"}\\"}"}\n',
    "json name/value": '{"name": "DB_PASSWORD", "value": "«{a22}»"}\n',
    "json key/value list": '[{"key": "API_TOKEN", "value": "«{a22}»"}]\n',
    "json env list": '{"env": ["DB_PASSWORD=«{a22}»"]}\n',
    "json argv opt": '{"args": ["--token", "«{a22}»"]}\n',
    "json \\u name": '{"pass\\u0077ord": "«{a22}»"}\n',
    "yaml": "password: «{a22}»\n",
    "yaml block": "password: >-\n  «{a22}»\n",
    "toml": 'api_key   = "«{a22}»"\n',
    "ini": "password   =   «{a22}»\n",
    "ini colon many sp": "password:     «{a22}»\n",
    "properties": "spring.datasource.password=«{a22}»\n",
    "env export": "export GH_TOKEN=«{a22}»\n",
    "env fish": "set -x GH_TOKEN «{a22}»\n",
    "env ps": "$env:GH_TOKEN = '«{a22}»'\n",
    "env cmd": "set GH_TOKEN=«{a22}»\n",
    "docker -e": "docker run -e DB_PASSWORD=«{a22}» img\n",
    "docker login": "docker login -u me -p «{a22}» reg\n",
    "py kw": "connect(user='a', password='«{a22}»')\n",
    "py dict repr": "{'password': '«{a22}»'}\n",
    "py bytes repr": "{'password': b'«{a22}»'}\n",
    "py f": "SECRET_KEY = b'«{a22}»'\n",
    "rust debug": 'Config { password: Some("«{a22}»") }\n',
    "ruby hash": ":password => '«{a22}»'\n",
    "go struct": "{User:me Password:«{a22}»}\n",
    "java toString": "Creds(user=me, password=«{a22}»)\n",
    "url cred": "postgres://me:«{a22}»@db/x\n",
    "url cred token only": "https://«{a22}»@github.com/x\n",
    "url cred x-access": "https://x-access-token:«{a22}»@github.com/x\n",
    "url pct": "https%3A%2F%2Fme%3A«{a22}»%40host%2F\n",
    "url token param": "https://x/y?access_token=«{a22}»&a=1\n",
    "bearer": "Authorization: Bearer «{a22}»\n",
    "auth token": "Authorization: token «{a22}»\n",
    "cookie": "Set-Cookie: session=«{a22}»; Path=/\n",
    "cookie in json": '{"headers": {"cookie": "sid=«{a22}»"}}\n',
    "npmrc": "//npm.example/:_authToken=«{a22}»\n",
    "npmrc _password": "//r/:_password=«{a22}»\n",
    "pypirc": "[pypi]\nusername = __token__\npassword = «{a22}»\n",
    "git cred": "protocol=https\nhost=x\nusername=me\npassword=«{a22}»\n",
    "mysql -p": "mysql -u root -p«{a22}» db\n",
    "mysqldump --password": "mysqldump --password=«{a22}» db\n",
    "PGPASSWORD": "PGPASSWORD=«{a22}» psql -h x\n",
    "sshpass": "sshpass -p «{a22}» ssh h\n",
    "sshpass -pX": "sshpass -p«{a22}» ssh h\n",
    "redis": "redis-cli -a «{a22}» ping\n",
    "openssl": "openssl enc -pass pass:«{a22}»\n",
    "echo sudo": "echo «{a22}» | sudo -S ls\n",
    "htpasswd": "htpasswd -b file user «{a22}»\n",
    "ldap -w": "ldapsearch -D cn=a -w «{a22}»\n",
    "smb": "smbclient //h/s -U user%«{a22}»\n",
    "az sp": "az login --service-principal -u x -p «{a22}» --tenant t\n",
    "aws cfg": "aws_secret_access_key = «{a22}»\n",
    "aws configure set": "aws configure set aws_secret_access_key «{a22}»\n",
    "gh auth": "echo «{a22}» | gh auth login --with-token\n",
    "kubectl literal": "kubectl create secret generic x --from-literal=pw=«{a22}»\n",
    "kubectl --token": "kubectl --token «{a22}» get pods\n",
    "vault kv": "vault kv put secret/x password=«{a22}»\n",
    "helm --set": "helm install x --set db.password=«{a22}»\n",
    "terraform": 'db_password = "«{a22}»"\n',
    "terraform -var": "terraform apply -var db_password=«{a22}»\n",
    "conn string": "Server=db;User Id=sa;Password=«{a22}»;\n",
    "odbc pwd": "Driver=x;UID=sa;PWD=«{a22}»\n",
    "jdbc": "jdbc:mysql://h/db?user=a&password=«{a22}»\n",
    "azure key": "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=«{a22}»==;EndpointSuffix=y\n",
    "sas": "https://x.blob/?sv=1&sig=«{a22}»%3D\n",
    "totp": "otpauth://totp/x?secret=«{a22}»&issuer=y\n",
    "wifi": "WIFI:S:n;T:WPA;P:«{a22}»;;\n",
    "said": "The password is «{a22}».\n",
    "said de": "Enter password: «{a22}»\n",
    "psql prompt": "Password for user x: «{a22}»\n",
    "camel": "dbPassword=«{a22}»\n",
    "camel json": '{"githubToken": "«{a22}»"}\n',
    "webhook": "https://discord.com/api/webhooks/123456789012345678/«{a44}»\n",
    "slack hook": "https://hooks.slack.com/services/T000/B000/«{a22}»\n",
    "split2 (two writes) pw": "password=«{a22}»\n",
    "split2 json": '{"api_key": "«{a22}»"}\n',
    "split stderr between": "token=«{a22}»\n",
    "colour name": "\u001b[36mpassword\u001b[0m: \u001b[33m«{a22}»\u001b[0m\n",
    "table": "| password | «{a22}» |\n",
    "md": "**Password:** `«{a22}»`\n",
    "table psql": " id | password \n----+----------\n  1 | «{a22}»\n",
    "csv": "user,password\nme,«{a22}»\n",
    "grep -n": ".env:3:DB_PASSWORD=«{a22}»\n",
    "diff": "+API_KEY=«{a22}»\n",
    "cat -n": "     3\tAPI_KEY=«{a22}»\n",
    "sse": 'data: {"token":"«{a22}»"}\n',
    "multipart": 'Content-Disposition: form-data; name="password"\r\n\r\n«{a22}»\r\n',
}
"""The forms with which a reviewer attacked the recorder."""

PUBLISHED = {
    # keys of providers
    "1Password secret key": "my kit: «A3-{u6}-{u11}-{u5}-{u5}-{u5}»\n",
    "1Password service account": "export OP=«ops_eyJ{a250}»\n",
    "Adobe client secret": "adobe «p8e-{l32}»\n",
    "Airtable": "airtable «pat{a14}.{h64}»\n",
    "Alibaba": "id «LTAI{l20}»\n",
    "Artifactory": '"«AKC{a70}»"\n',
    "Artifactory reference": "jf «cmVmd{a59}»\n",
    "Asana": "asana «1/{n16}:{h32}»\n",
    "Atlassian": "jira «ATATT3{a186}»\n",
    "Authress": "«sc_{l20}.{l5}.acc_{l20}.{a60}»\n",
    "AWS session": "id: «ASIA{u16}»\n",
    "AWS, a key between quotes": "aws_secret = 'key', aws key \"«{a40}»\"\n",
    "Azure AD": "az «{a3}7Q~{a33}»\n",
    "Azure DevOps": "pat «{a76}AZDO{a4}»\n",
    "Bedrock": "key «ABSK{a120}»\n",
    "Brevo": "mail «xkeysib-{h64}-{l16}»\n",
    "Buildkite": "«bkua_{h40}»\n",
    "CircleCI": "«CCIPAT_{a22}_{h40}»\n",
    "ClickHouse": "«4b1d{a38}»\n",
    "Clojars": "«CLOJARS_{h60}»\n",
    "Cloudflare origin CA": "«v1.0-{h24}-{h146}»\n",
    "Contentful": "«CFPAT-{a43}»\n",
    "crates.io": "«cio7{a31}»\n",
    "Databricks": "«dapi{h32}-2»\n",
    "Docker": "docker «dckr_pat_{a27}»\n",
    "Doppler": "«dp.st.dev.{a43}»\n",
    "Duffel": "«duffel_live_{a43}»\n",
    "Dynatrace": "«dt0c01.{u24}.{u64}»\n",
    "EasyPost": "«EZAK{a54}»\n",
    "Facebook": "«EAAC{a120}»\n",
    "Figma": "«figd_{a40}»\n",
    "Flutterwave": "«FLWSECK_TEST-{h32}-X»\n",
    "Fly.io": "«fm2_{a120}»\n",
    "Frame.io": "«fio-u-{a64}»\n",
    "GitLab agent": "«glagent-{a50}»\n",
    "GitLab feed": "«glft-{a20}»\n",
    "GitLab runner": "«GR1348941{a20}»\n",
    "GitLab, a routable token": "«glpat-{a27}.{l9}»\n",
    "GitLab, a session": "_gitlab_session=«{h32}»\n",
    "Grafana": "«glsa_{a32}_{h8}»\n",
    "Grafana Cloud": "«glc_{a80}»\n",
    "Harness": "«pat.{a22}.{a24}.{a20}»\n",
    "Heroku": "«HRKU-AA{a58}»\n",
    "HubSpot": "«pat-na1-{h8}-{h4}-{h4}-{h4}-{h12}»\n",
    "Infracost": "«ico-{a32}»\n",
    "Intra42": "«s-s4t2ud-{h64}»\n",
    "LangSmith": "«lsv2_pt_{h32}_{h10}»\n",
    "LaunchDarkly": "«sdk-{h8}-{h4}-{h4}-{h4}-{h12}»\n",
    "Mailchimp": "«{h32}-us12»\n",
    "Mapbox": "«sk.eyJ{a60}.{a22}»\n",
    "MaxMind": "«{a6}_{a29}_mmk»\n",
    "Netlify": "«nfp_{a36}»\n",
    "New Relic": "«NRAK-{u27}»\n",
    "NuGet": "«oy2{l43}»\n",
    "NVIDIA": "«nvapi-{a64}»\n",
    "Octopus": "«API-{u26}»\n",
    "OpenShift": "oc login --server=x «sha256~{a43}»\n",
    "Ory": "«ory_at_{a43}.{a43}»\n",
    "Pinecone": "«pcsk_{a5}_{a60}»\n",
    "Plaid": "«access-sandbox-{h8}-{h4}-{h4}-{h4}-{h12}»\n",
    "PlanetScale": "«pscale_tkn_{a43}»\n",
    "PostHog": "«phx_{a44}»\n",
    "Postman": "«PMAK-{h24}-{h34}»\n",
    "Prefect": "«pnu_{a36}»\n",
    "Pulumi": "«pul-{h40}»\n",
    "Razorpay": "«rzp_live_{a14}»\n",
    "ReadMe": "«rdme_{l70}»\n",
    "Resend": "«re_{a8}_{a24}»\n",
    "RubyGems": "«rubygems_{h48}»\n",
    "Scalingo": "«tk-us-{a48}»\n",
    "SendGrid": "«SG.{a22}.{a43}»\n",
    "Sentry": "«sntryu_{h64}»\n",
    "SettleMint": "«sm_pat_{a16}»\n",
    "Shippo": "«shippo_live_{h40}»\n",
    "Slack, a workflow": "https://hooks.slack.com/workflows/«T{u10}/A{u10}/{n18}/{a24}»\n",
    "Sourcegraph": "«sgp_{h16}_{h40}»\n",
    "Square": "«sq0atp-{a22}»\n",
    "Stripe, a restricted key": "«rk_live_{a99}»\n",
    "Supabase": "«sbp_{h40}»\n",
    "Tailscale": "«tskey-auth-{a12}-{a32}»\n",
    "Teams": "https://x.webhook.office.com/webhookb2/«{h8}-{h4}-{h4}-{h4}-{h12}@{h8}-{h4}-{h4}-{h4}-{h12}»/IncomingWebhook\n",
    "Terraform": "«{a14}.atlasv1.{a64}»\n",
    "Twilio": "«AC{h32}»\n",
    "Twitch": "«oauth:{l30}»\n",
    "Typeform": "«tfp_{a59}»\n",
    "Yandex": "«AQVN{a37}»\n",
    "Zapier": "https://hooks.zapier.com/hooks/catch/«{n7}/{l9}»/\n",
    # places
    "Okta, a header": "Authorization: SSWS «00{a40}»\n",
    "a curl login with an empty user": "curl -u :«{a22}» https://x.example\n",
    "an Azure function": "x-functions-key: «{a52}==»\n",
    "a subscription key": "Ocp-Apim-Subscription-Key: «{h32}»\n",
    "a Sidekiq URL": "https://{h8}:«{h8}»@gems.contribsys.com/\n",
    "a Rails secret": "secret_key_base: «{h128}»\n",
    "a WireGuard peer": "PresharedKey = «{a43}=»\n",
    "a PuTTY key": "PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 1\n«{a64}»\nPrivate-MAC: {h40}\n",
    "an SSH2 key": "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n«{a64}»\n---- END SSH2 ENCRYPTED PRIVATE KEY ----\n",
    "a PGP key": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n«{a64}»\n-----END PGP PRIVATE KEY BLOCK-----\n",
    "SQL": "CREATE USER app WITH PASSWORD '«{a22}»';\n",
    "SQL of MySQL": "CREATE USER app IDENTIFIED BY '«{a22}»';\n",
    "csh": "setenv API_TOKEN «{a22}»\n",
    "an archive": "unzip -P «{a22}» x.zip\n",
    "a key store": "keytool -list -storepass «{a22}» -keystore x\n",
    "a here-string": 'gh auth login --with-token <<< "«{a22}»"\n',
    "a login of vault": "vault login «{a26}»\n",
}
"""Forms of public documents: the rules of gitleaks and detect-secrets, the pages of GitHub and GitLab on secrets."""

NOT_FOUND = {
    "an older vault token": "VAULT uses «s.{a24}» now\n",
    "Datadog without a name": "datadog «{h32}»\n",
    "Okta without a name": "okta «00{a40}»\n",
    "a key that is a UUID": "postmark «{h8}-{h4}-{h4}-{h4}-{h12}»\n",
    "a password without a name": "swordfish? no: «{a16}»\n",
    "a password in hexadecimal": "70617373776f72643d«{h40}»\n",
    "twelve words": "seed: «abandon ability able about above absent absorb abstract absurd abuse access accident»\n",
}
"""Forms of the same documents that only a name beside them would give away: SECURITY.md lists them."""


def _write_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


WRITTEN_OTHERWISE: dict[str, tuple[str, Callable[[str], str]]] = {
    "yaml k8s b64": ("«{a22}»", lambda s: f"kind: Secret\ndata:\n  password: {_write_base64(s)}\n"),
    "basic b64": ("«{a22}»", lambda s: f"Authorization: Basic {_write_base64(f'me:{s}')}\n"),
    "basic lower": ("«{a22}»", lambda s: f"authorization: basic {_write_base64(f'me:{s}')}\n"),
    "docker cfg": ("«{a22}»", lambda s: json.dumps({"auths": {"r": {"auth": _write_base64(f"me:{s}")}}}) + "\n"),
    "b64 of line": ("«{a22}»", lambda s: _write_base64(f"password={s}\n") + "\n"),
    "b64 of json": ("«{a22}»", lambda s: _write_base64(json.dumps({"api_key": s})) + "\n"),
    "json-esc special": ("«{a9}/+{a9}=»", lambda s: json.dumps({"password": s}).replace("/", "\\/") + "\n"),
    "xml-esc special": ("«{a9}<>{a9}&{a2}»", lambda s: f"<password>{html.escape(s)}</password>\n"),
    "pem": (
        "«{a22}»",
        lambda s: f"-----BEGIN RSA PRIVATE KEY-----\nMIIE{s}{s}\n{s}\n-----END RSA PRIVATE KEY-----\n",
    ),
    "pem in json": (
        "«{a22}»",
        lambda s: json.dumps({"k": f"-----BEGIN PRIVATE KEY-----\nMIIE{s}{s}\n-----END PRIVATE KEY-----\n"}) + "\n",
    ),
    "ansi in": ("«{a22}»", lambda s: f"password={s[:6]}\x1b[31m{s[6:]}\x1b[0m\n"),
    "split2 netrc": ("«{a22}»", lambda s: f"machine h login me password {s}\n"),
}
"""The forms of the same reviewer in which the secret is escaped, encoded or repeated."""


def expand_form(name: str, form: str) -> tuple[str, str]:
    """Give the text of a form, and its secret: the same ones for the same name."""
    rnd = random.Random(name)  # noqa: S311  # the same text each time

    def draw(found: re.Match[str]) -> str:
        letters, size = _LETTERS[found[1]], int(found[2])
        while True:
            word = "".join(rnd.choice(letters) for _ in range(size))
            if size < 6 or found[1] == "n" or re.search("(?=.*[0-9])(?=.*[A-Za-z])", word):
                return word

    text = re.sub(r"\{([ahunl])(\d+)\}", draw, form)
    secret = text[text.index("«") + 1 : text.index("»")]
    return text.replace("«", "").replace("»", ""), secret


def list_all_forms() -> dict[str, tuple[str, str]]:
    """Give text and secret of every form that is found."""
    found = {name: expand_form(name, form) for name, form in {**ATTACKED, **PUBLISHED}.items()}
    for name, (form, write) in WRITTEN_OTHERWISE.items():
        _text, secret = expand_form(name, form)
        found[name] = (write(secret), secret)
    return found
