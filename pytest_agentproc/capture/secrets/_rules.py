"""What secrets look like, and where they stand: keys of known providers, and values that a name or a place gives away.

Values in, places out: this file knows no escapes, no streams and no placeholders. A rule is a pattern; what no pattern
can say (is it code? is it a word that is no secret?) is a function.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from pytest_agentproc.capture.secrets._library import find_keys_with_library

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence


MIN_SECRET_BYTES = 6
"""A value with fewer bytes is no secret that can be told from other words."""

_KEY_PREFIXES_AND_REST_BY_KIND = {
    "1Password key": ("ops_eyJ", rb"[\w+/=-]{40,}"),
    "Adobe secret": ("p8e-", rb"[\w-]{28,}"),
    "Alibaba key id": ("LTAI", rb"[A-Za-z0-9]{12,26}(?![\w+=])"),
    "Anthropic key": ("sk-ant-", rb"[\w-]{16,}"),
    "Apify token": ("apify_api_", rb"\w{30,}"),
    "Atlassian token": ("ATATT3 ATCTT3 ATBB ATOA ATTA", rb"[\w=-]{28,}(?![\w+])"),
    "Bedrock key": ("ABSK bedrock-api-key-", rb"[A-Za-z0-9+/]{50,}={0,2}"),
    "Brevo key": ("xkeysib- xsmtpsib-", rb"[\w-]{64,}"),
    "Buildkite token": ("bkua_ bkaj_", rb"[0-9a-f]{36,}"),
    "Cerebras key": ("csk-", rb"\w{40,}"),
    "CircleCI token": ("CCIPAT_ CCIPRJ_", rb"\w{22,}"),
    "ClickHouse key": ("4b1d", rb"[A-Za-z0-9]{38}(?!\w)"),
    "Clojars token": ("CLOJARS_", rb"[0-9a-f]{60}"),
    "Cloudflare key": ("v1.0-", rb"[0-9a-f]{24}-[0-9a-f]{140,}"),
    "Contentful token": ("CFPAT-", rb"[\w-]{40,}"),
    "Databricks token": ("dapi", rb"[0-9a-f]{32}(?:-\d)?"),
    "Deno token": ("ddp_ ddw_", rb"[A-Za-z0-9]{36}"),
    "DigitalOcean token": ("dop_v1_ doo_v1_ dor_v1_", rb"[0-9a-f]{32,}"),
    "Docker token": ("dckr_pat_ dckr_oat_", rb"[\w-]{20,}"),
    "Doppler token": ("dp.pt. dp.st. dp.sa. dp.ct. dp.scim. dp.audit.", rb"[\w.-]{20,}"),
    "Dropbox token": ("sl.", rb"[\w-]{120,}"),
    "Duffel token": ("duffel_test_ duffel_live_", rb"[\w=-]{30,}"),
    "Dynatrace token": ("dt0c01. dt0s16. dt0s01.", rb"[A-Za-z0-9]{8,24}\.[A-Za-z0-9]{64}"),
    "E2B key": ("e2b_", rb"[0-9a-f]{40}"),
    "EasyPost key": ("EZAK EZTK", rb"[A-Za-z0-9]{54}(?!\w)"),
    "ElevenLabs key": ("sk_", rb"[0-9a-f]{48}(?!\w)"),
    "Facebook token": ("EAA", rb"[A-Za-z0-9]{90,}(?![\w+=])"),
    "Figma token": ("figd_ figo_ figu_ figur_", rb"[\w-]{36,}"),
    "Firecrawl key": ("fc-", rb"[0-9a-f]{32}(?!\w)"),
    "Fireworks key": ("fw_", rb"[A-Za-z0-9]{20,}"),
    "Flutterwave key": ("FLWSECK_TEST- FLWSECK-", rb"[\w-]{12,}"),
    "Fly.io token": ("fo1_ fm1a_ fm1r_ fm2_", rb"[\w+/=-]{40,}"),
    "Frame.io token": ("fio-u-", rb"[\w=-]{40,}"),
    "GitHub token": ("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", rb"\w{20,}"),
    "GitLab token": (
        "glpat- glptt- gldt- glrt- glrtr- glcbt- glsoat- glft- glimt- glagent- gloas- glffct- glwt- GR1348941",
        rb"[\w.-]{16,}",
    ),
    "Google key": ("AIza GOCSPX- ya29. 1//0", rb"[\w.-]{20,}"),
    "Grafana token": ("glsa_ glc_ eyJrIjoi", rb"[\w+/=]{32,}"),
    "Groq key": ("gsk_", rb"[A-Za-z0-9]{20,}"),
    "HashiCorp Vault token": ("hvs. hvb. hvr.", rb"[\w-]{20,}"),
    "Heroku key": ("HRKU-", rb"[\w-]{30,}"),
    "HubSpot token": ("pat-na1- pat-na2- pat-eu1- pat-ap1-", rb"[0-9a-f-]{36}"),
    "Hugging Face token": ("hf_ api_org_", rb"[A-Za-z0-9]{20,}"),
    "Infracost key": ("ico-", rb"[A-Za-z0-9]{32}(?!\w)"),
    "Intra42 secret": ("s-s4t2ud- s-s4t2af-", rb"[0-9a-f]{64}"),
    "Jina key": ("jina_", rb"\w{40,}"),
    "LangSmith key": ("lsv2_pt_ lsv2_sk_ ls__", rb"\w{32,}"),
    "LaunchDarkly key": ("sdk-", rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    "Linear key": ("lin_api_ lin_oauth_", rb"\w{20,}"),
    "Mailgun key": ("key-", rb"[0-9a-f]{32}"),
    "Mapbox token": ("sk.eyJ", rb"[\w.-]{50,}"),
    "Neon key": ("napi_", rb"[A-Za-z0-9]{40,}"),
    "Netlify token": ("nfp_", rb"\w{36,}"),
    "New Relic key": ("NRAK- NRAA- NRJS- NRII- NRIQ- NRRA-", rb"[\w-]{19,}"),
    "Notion token": ("ntn_", rb"[A-Za-z0-9]{20,}"),
    "NuGet key": ("oy2", rb"[a-z0-9]{43}(?!\w)"),
    "NVIDIA key": ("nvapi-", rb"[\w-]{40,}"),
    "Octopus key": ("API-", rb"[A-Z0-9]{25,32}(?!\w)"),
    "OpenAI-like key": ("sk-", rb"[\w-]{16,}"),
    "OpenShift token": ("sha256~", rb"[\w-]{43}"),
    "Ory token": ("ory_at_ ory_rt_ ory_pat_ ory_st_", rb"[\w.-]{30,}"),
    "Packagist token": ("packagist_uut_ packagist_out_ packagist_ack_", rb"\w{40,}"),
    "Perplexity key": ("pplx-", rb"[A-Za-z0-9]{20,}"),
    "Pinecone key": ("pcsk_", rb"\w{40,}"),
    "PlanetScale token": ("pscale_tkn_ pscale_pw_ pscale_oauth_", rb"[\w=.-]{32,}"),
    "Polar token": ("polar_pat_ polar_oat_ polar_ci_ polar_cs_", rb"\w{30,}"),
    "PostHog key": ("phx_ phs_", rb"\w{40,}"),
    "Postman key": ("PMAK- PMAT-", rb"[\w-]{20,}"),
    "Prefect key": ("pnu_ pnb_", rb"[A-Za-z0-9]{36}"),
    "Pulumi token": ("pul-", rb"[0-9a-f]{40}"),
    "PyPI token": ("pypi-", rb"[\w-]{16,}"),
    "Razorpay key": ("rzp_live_ rzp_test_", rb"\w{14,}"),
    "ReadMe key": ("rdme_", rb"\w{60,}"),
    "Replicate token": ("r8_", rb"[A-Za-z0-9]{20,}"),
    "RubyGems key": ("rubygems_", rb"[0-9a-f]{48}"),
    "Scalingo token": ("tk-us-", rb"[\w-]{48}"),
    "Sentry token": ("sntrys_ sntryu_ sntryi_", rb"[\w+/=-]{40,}"),
    "SettleMint token": ("sm_aat_ sm_pat_ sm_sat_", rb"\w{16,}"),
    "Shippo token": ("shippo_live_ shippo_test_", rb"[0-9a-fA-F]{40}"),
    "Shopify token": ("shpat_ shpca_ shppa_ shpss_", rb"[0-9a-fA-F]{32}"),
    "Slack token": ("xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp- xoxe.", rb"[\w.-]{10,}"),
    "Sourcegraph token": ("sgp_", rb"(?:\w{5,16}_)?[0-9a-f]{40}"),
    "Square token": ("sq0atp- sq0csp- EAAA", rb"[\w-]{22,60}(?![\w+=])"),
    "Stripe key": ("sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_", rb"[\w+/=]{10,}"),
    "Supabase key": ("sbp_ sb_secret_", rb"[\w-]{20,}"),
    "Tailscale key": ("tskey-", rb"[a-z]+-\w+-\w{16,}"),
    "Tavily key": ("tvly-", rb"[\w-]{20,}"),
    "Together key": ("tgp_v1_", rb"[\w-]{40,}"),
    "Twitch token": ("oauth:", rb"[a-z0-9]{30}(?!\w)"),
    "Typeform token": ("tfp_", rb"[\w.=-]{40,}"),
    "Weights & Biases key": ("wandb_v1_", rb"\w{30,}"),
    "Yandex key": ("AQVN y0_", rb"[\w-]{35,}(?![\w+=])"),
    "age key": ("AGE-SECRET-KEY-1", rb"[0-9A-Z]{20,}"),
    "npm token": ("npm_", rb"[A-Za-z0-9]{30,}"),
    "xAI key": ("xai-", rb"[A-Za-z0-9]{20,}"),
}
"""Beginnings of keys that a provider gives out, and what follows each. No letter or digit stands before a key."""
_SHAPED_KEY_PATTERNS = {
    "1Password secret key": rb"A3-[A-Z0-9-]{28,40}(?![\w-])",
    "Airtable token": rb"pat\w{14}\.[0-9a-f]{64}",
    "Asana token": rb"[12]/\d{16}(?:/\d{16})?:[0-9a-f]{32}",
    "Authress key": rb"(?:sc|ext|scauth|authress)_\w{5,30}\.\w{4,6}\.acc[_-][\w-]{10,32}\.[\w+/=-]{30,120}",
    "Azure client secret": rb"[\w.~]{3}\dQ~[\w.~-]{31,34}",
    "Azure DevOps token": rb"[A-Za-z0-9]{52,80}AZDO[A-Za-z0-9]{4}",
    "Harness token": rb"[ps]at\.[\w-]{22}\.\w{24}\.\w{20}",
    "JFrog token": rb"cmVmd[A-Za-z0-9]{59}(?!\w)",
    "JSON web token": rb"eyJ(?<!\weyJ)[\w-]{8,2000}\.eyJ[\w-]{8,}(?:\.[\w-]*)?",
    "MaxMind key": rb"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk",
    "Notion secret": rb"secret_\w{40,}",
    "Plaid token": rb"access-(?:sandbox|development|production)-[0-9a-f-]{36}",
    "Resend key": rb"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}",
    "Telegram token": rb"\d{8,10}:AA[\w-]{30,}",
    "Terraform token": rb"\w{14}\.atlasv1\.[\w=-]{60,}",
    "crates.io token": rb"cio(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{32}(?!\w)",
}
_SECRET_NAME_ALTERNATIVES = (
    rb"(?:api|private|access|account|auth|master|encryption|signing|session|consumer|app|application|service|shared"
    rb"|preshared|subscription|deploy|functions|license|ssh)[_-]?key|token|secret|passw(?:or)?d|passphrase|passcode|pwd"
    rb"|credentials?|creds(?![a-z])"
)
_SECRET_NAME_SUFFIX = (
    rb"(?:[_-](?:key|base|value|text|string|base64|b64|prod|production|staging|dev|live|old|new)(?![a-z])){0,3}"
    rb"(?:[_-]?\d{1,2}(?!\w))?"
)
"""What may follow a telling name: `secret_key_base`, `API_KEY_PROD`, `TOKEN2`."""
_WORDS_BEFORE_OPTION_PATTERN = rb"(?:[^\r\n]{0,400}?[\s\"'\x00])?"
"""What may stand between a command and its option."""
_WORD_SEPARATOR_PATTERN = rb"[\s\"',=\x00]{1,16}"
"""What separates two words of a command line in a shell, in a list of JSON, and where the kernel gives them."""
_OPTIONAL_SEPARATOR_PATTERN = rb"(?:" + _WORD_SEPARATOR_PATTERN + rb")?[\"']?"
_MIXED_CHARACTERS_LOOKAHEAD = rb"(?=[^\s\"']{0,300}?[0-9])(?=[^\s\"']{0,300}?[a-z])(?=[^\s\"']{0,300}?[A-Z])"
_RANDOM_LOOKING_LOOKAHEAD = rb"(?=[^\s\"']{0,300}?[0-9])(?=[^\s\"']{0,300}?[A-Za-z])(?!-)"
_SHELL_WORD_PATTERN = rb"([^\s\"'\x00]{6,})"
_OPTION_OF_COMMANDS: dict[str, tuple[bytes, bytes, bytes, tuple[bytes, ...]]] = {
    "login of curl": (
        rb"curl|wget",
        rb"(?:-\w{0,8}[uU]|--(?:proxy-)?user)",
        rb"[^\s:/\"'\x00]{0,100}:(?!//)" + _SHELL_WORD_PATTERN,
        (b"curl", b"wget"),
    ),
    "login of httpie": (
        rb"https?|xh",
        rb"(?:-a|--auth)",
        rb"[^\s:/\"'\x00]{0,100}:(?!//)" + _SHELL_WORD_PATTERN,
        (b"http ", b"https ", b"http\0", b"https\0", b"xh"),
    ),
    "login of an FTP client": (rb"lftp|ncftp\w*", rb"-u", rb"[^\s,\"'\x00]{1,100}," + _SHELL_WORD_PATTERN, (b"ftp",)),
    "password of a database": (
        rb"mysql\w*|mariadb[\w-]*",
        rb"-p[\"']?(?![\s\x00])",
        _SHELL_WORD_PATTERN,
        (b"mysql", b"mariadb"),
    ),
    "password of a command": (
        rb"sshpass|mongo\w*|twine|cqlsh|7z[ar]?",
        rb"-p",
        _SHELL_WORD_PATTERN,
        (b"sshpass", b"mongo", b"twine", b"cqlsh", b"7z"),
    ),
    "password of a login": (
        rb"(?:docker|podman|helm|az|oc|cf|skopeo|buildah)\b" + _WORDS_BEFORE_OPTION_PATTERN + rb"login",
        rb"-p",
        _SHELL_WORD_PATTERN,
        (b"login",),
    ),
    "password of redis-cli": (rb"redis-cli", rb"-a", _SHELL_WORD_PATTERN, (b"redis-cli",)),
    "password of LDAP": (
        rb"ldap(?:search|modify|add|delete|whoami|passwd|compare)",
        rb"-w",
        _SHELL_WORD_PATTERN,
        (b"ldap",),
    ),
    "password of an archive": (rb"(?:un)?zip", rb"-P", _SHELL_WORD_PATTERN, (b"zip",)),
    "password of a server": (
        rb"sqlcmd|bcp|mosquitto_\w+|ipmitool",
        rb"-P",
        _SHELL_WORD_PATTERN,
        (b"sqlcmd", b"bcp", b"mosquitto", b"ipmitool"),
    ),
    "password of a key store": (
        rb"keytool|jarsigner",
        rb"-(?:store|key|new|src|dest)\w{0,20}pass",
        _SHELL_WORD_PATTERN,
        (b"keytool", b"jarsigner"),
    ),
    "password of a desktop": (rb"[xw]?freerdp\w*", rb"/p:", _SHELL_WORD_PATTERN, (b"freerdp",)),
    "passphrase of ssh-keygen": (rb"ssh-keygen", rb"-[NP]", _SHELL_WORD_PATTERN, (b"ssh-keygen",)),
    "token of a service": (
        rb"codecov|vercel|doctl|flyctl|netlify",
        rb"-t",
        _RANDOM_LOOKING_LOOKAHEAD + rb"([^\s\"'\x00]{12,})",
        (b"codecov", b"vercel", b"doctl", b"flyctl", b"netlify"),
    ),
    "password of SMB": (
        rb"smb\w+|rpcclient|net|mount\.cifs",
        rb"(?:-U|--user)",
        rb"[\w.\\/-]{1,60}%" + _SHELL_WORD_PATTERN,
        (b"%",),
    ),
}
"""Commands, the option that gives a secret, how that looks, and words without which there is none."""
_SECRET_PATTERNS_BY_CONTEXT = {
    **{
        kind: rb"\b(?:%b)\b%b(?<=[\s\"'\x00])%b%b%b"
        % (command, _WORDS_BEFORE_OPTION_PATTERN, option, _OPTIONAL_SEPARATOR_PATTERN, value)
        for kind, (command, option, value, _words) in _OPTION_OF_COMMANDS.items()
    },
    "authorization header": rb"(?i:authorization\\*[\"']?\s*[:=][ \t]*\\*[\"']?)((?:[A-Za-z]+ )?[^\s\"'\\,;\x00]{6,})",
    "bearer token": rb"[Bb]earer[ +=\x00](?![A-Za-z][a-z]+(?![\w.~+/=-]))([\w.~+/=-]{6,})",
    "basic credentials": rb"[Bb]asic (?=\w[\w+/=]*?[A-Z0-9])([\w+/=]{8,})(?![\w-])",
    "cookie": rb"(?i:cookie: ?)([^\s=;\"'\x00]{1,200}=[^\r\n\"'\x00]{3,})",
    "cookie in JSON": rb"(?i:\"cookies?)\"\s{0,64}:\s{0,64}\"([^\"=\\\r\n]{1,100}=[^\"\\\r\n]{3,})",
    "cookie of GitLab": rb"_gitlab_session=([0-9a-f]{32})",
    "URL credentials": rb"://[^\s/:@\"'\\\x00]*:([^\s/@\"'\\\x00]{3,})@",
    "token in a URL": rb"://" + _RANDOM_LOOKING_LOOKAHEAD + rb"([\w.~-]{16,})@",
    "URL parameter": rb"[?&](?i:sig|signature|x-amz-signature|x-amz-security-token|code|key|auth)"
    rb"=([^\s&#\"'\\\x00]{6,})",
    "webhook of Slack": rb"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/]{20,})",
    "webhook of Discord": rb"/api/webhooks/\d{6,}/([\w-]{30,})",
    "webhook of Teams": rb"\.webhook\.office\.com/webhookb2/([\w@/-]{40,})",
    "webhook of Zapier": rb"hooks\.zapier\.com/hooks/catch/(\d+/\w+)",
    "registry login": rb"\b_?auth\"?\s{0,64}[:=]\s{0,64}\"?" + _MIXED_CHARACTERS_LOOKAHEAD + rb"([\w+/=-]{12,})",
    "password of openssl": rb"-pass\w{0,8}" + _WORD_SEPARATOR_PATTERN + rb"pass:" + _SHELL_WORD_PATTERN,
    "password on a pipe": rb"\b(?:echo|printf)(?: -\w+| [\"']?%s(?:\\n)?[\"']?)? [\"']?([^\s\"'|]{6,})[\"']? ?\| ?"
    rb"[^\r\n|]{0,100}?(?:--(?:password|token)-stdin|--with-token|--stdin|\bsudo -S|passwd|\blogin\b)",
    "password on stdin": rb"(?:--(?:password|token)-stdin|--with-token|\bsudo -S|passwd)[^\r\n|<]{0,100}<<< ?[\"']?"
    + _SHELL_WORD_PATTERN,
    "password after a user": rb"\b(?:htpasswd[ \x00](?:-\w*[ \x00]){0,4}?-\w*b\w*[ \x00](?:-\w*[ \x00]){0,4}"
    rb"(?:[^-\s\x00][^\s\x00]*[ \x00])?|rabbitmqctl[ \x00](?:add_user|change_password)[ \x00]|net[ \x00]user[ \x00]"
    rb"|wpa_passphrase[ \x00])[^-\s\x00][^\s\x00]*[ \x00][\"']?(?![-/])" + _SHELL_WORD_PATTERN,
    "token of a login": rb"\b(?:ngrok[ \x00](?:config[ \x00]add-)?authtoken|cargo[ \x00]login|snyk[ \x00]auth"
    rb"|(?:vault|wandb)[ \x00]login|poetry[ \x00]config[ \x00](?:pypi-token\.[\w-]+"
    rb"|http-basic\.[\w-]+[ \x00][^\s\x00]+))[ \x00][\"']?" + _RANDOM_LOOKING_LOOKAHEAD + _SHELL_WORD_PATTERN,
    "literal of a secret": rb"--from-literal[= \x00][\"']?[\w.-]{1,100}=" + _SHELL_WORD_PATTERN,
    "password of Wi-Fi": rb"WIFI:[^\r\n]{0,200}?;P:([^;\s]{6,});",
    "password in SQL": rb"(?i:\b(?:password|identified(?: with \w+)? by)) {1,4}'([^'\s]{6,})'",
    "field of a form": rb"(?i:name=\"?[\w.\[\]-]{0,60}(?:password|passwd|secret|token|api_?key)[\w.\[\]-]{0,20}\"?)"
    rb"(?:;[^\r\n]{0,200})?\r?\n(?:[\w-]{1,60}:[^\r\n]{0,300}\r?\n){0,4}\r?\n([^\s]{6,})",
    "netrc": rb"\b(?:machine\s{1,64}\S{1,200}|default)\s{1,64}(?:(?:login|account)\s{1,64}\S{1,200}\s{1,64}){0,2}"
    rb"password\s{1,64}(\S{6,})",
    "pgpass": rb"(?m:^)[\w.*-]{1,100}:(?:\d{4,5}|\*):(?!\d+:)[^:\s]{1,100}:[^:\s]{1,100}:([^\s:]{6,})(?m:$)",
    "value of a short name": rb"(?i:(?:\b|(?<=[_-]))(?:pw|pass|psk|pat))[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?"
    + _MIXED_CHARACTERS_LOOKAHEAD
    + rb"([^\s\"'`,;<>()&\\]{8,})",
    "answer to a prompt": rb"(?i:\b(?:password|passphrase|passcode|pin)) (?:for|of|to) [^\r\n:]{1,80}: {1,4}"
    + _RANDOM_LOOKING_LOOKAHEAD
    + rb"([^\s\"'`,;]{6,})",
    "said password": rb"(?i:\b(?:password|passphrase|passcode|token|secret|api[ _-]?key|access[ _-]?key))"
    rb" (?:is|was):? {1,4}[\"'`]?" + _MIXED_CHARACTERS_LOOKAHEAD + rb"([^\s\"'`,;]{8,})",
}
_PREFIXED_KEY_PATTERN_BY_KIND = {
    kind: re.compile(rb"(?:%b)%b" % (b"|".join(re.escape(head.encode()) for head in heads.split()), rest))
    for kind, (heads, rest) in _KEY_PREFIXES_AND_REST_BY_KIND.items()
}
_SHAPED_KEY_PATTERN_BY_KIND = {kind: re.compile(pattern) for kind, pattern in _SHAPED_KEY_PATTERNS.items()}
_CONTEXT_PATTERN_BY_KIND = {kind: re.compile(pattern) for kind, pattern in _SECRET_PATTERNS_BY_CONTEXT.items()}
_REQUIRED_WORDS_BY_KIND: dict[str, tuple[bytes, ...]] = {
    **{kind: tuple(heads.lower().encode().split()) for kind, (heads, _) in _KEY_PREFIXES_AND_REST_BY_KIND.items()},
    **{kind: words for kind, (_command, _option, _value, words) in _OPTION_OF_COMMANDS.items()},
    "1Password secret key": (b"a3-",),
    "Airtable token": (b"pat",),
    "Asana token": (b"1/", b"2/"),
    "Authress key": (b".acc",),
    "Azure client secret": (b"q~",),
    "Azure DevOps token": (b"azdo",),
    "Harness token": (b"pat.", b"sat."),
    "JFrog token": (b"cmvmd",),
    "JSON web token": (b"eyj",),
    "MaxMind key": (b"_mmk",),
    "Notion secret": (b"secret_",),
    "Plaid token": (b"access-",),
    "Resend key": (b"re_",),
    "Telegram token": (b":aa",),
    "Terraform token": (b".atlasv1.",),
    "crates.io token": (b"cio",),
    "authorization header": (b"authorization",),
    "bearer token": (b"bearer",),
    "basic credentials": (b"basic",),
    "cookie": (b"cookie",),
    "cookie in JSON": (b"cookie",),
    "cookie of GitLab": (b"_gitlab_session",),
    "URL credentials": (b"://",),
    "token in a URL": (b"://",),
    "URL parameter": (b"?", b"&"),
    "webhook of Slack": (b"hooks.slack",),
    "webhook of Discord": (b"/api/webhooks/",),
    "webhook of Teams": (b".webhook.office",),
    "webhook of Zapier": (b"hooks.zapier",),
    "registry login": (b"auth",),
    "password of openssl": (b"pass:",),
    "password on a pipe": (b"echo", b"printf"),
    "password on stdin": (b"<<<",),
    "password after a user": (b"htpasswd", b"rabbitmqctl", b"net user", b"net\0user", b"wpa_passphrase"),
    "token of a login": (b"ngrok", b"cargo", b"snyk", b"vault", b"wandb", b"poetry"),
    "literal of a secret": (b"--from-literal",),
    "password of Wi-Fi": (b"wifi:",),
    "password in SQL": (b"password '", b"by '"),
    "field of a form": (b"name=",),
    "netrc": (b"machine", b"default"),
    "pgpass": (b":",),
    "value of a short name": (b"pw", b"pass", b"psk", b"pat"),
    "answer to a prompt": (b" for ", b" of ", b" to "),
    "said password": (b" is", b" was"),
}
"""Words without which there is none of a kind; they are looked for first, as that costs next to nothing."""
_SECRET_NAME_PATTERN = re.compile(rb"(?:%b)%b" % (_SECRET_NAME_ALTERNATIVES, _SECRET_NAME_SUFFIX))
_DOUBLE_QUOTED_VALUE_PATTERN = rb"\"((?:[^\"\\\r\n]++|\\[\x00-\xff])++)(?:\"|\Z)"
_QUOTED_VALUE_PATTERN = _DOUBLE_QUOTED_VALUE_PATTERN + rb"|'((?:[^'\\\r\n]++|\\[\x00-\xff])++)(?:'|\Z)"
_UNQUOTED_VALUE_PATTERN = (
    rb"""["']?((?:[^\s"'`\\&,;<>()\x00-\x1f]++|[&;](?![\w.-]{1,40}=)(?=[^\s"'`])|,(?![\w.-]{1,40}[=:])(?=[^\s"'`])"""
    rb"""|[<>()](?=[^\s"'`,;]))+)"""
)
"""A value without quotes: `&`, `,` and `;` end it before the next assignment; a bracket at its end is no part of it.

The group as a whole is not repeated possessively, as CPython before 3.11.5 skips the look-aheads in such a group.
"""
_ANY_VALUE_PATTERN = rb"(?:" + _QUOTED_VALUE_PATTERN + rb"|" + _UNQUOTED_VALUE_PATTERN + rb")"
_VALUE_WRAPPER_PATTERN = (
    rb"(?:[bBrRuUfF]{1,2}(?=[\"'])"
    rb"|(?:(?:Some|Ok|Just|Optional|Secret(?:Str|String|Bytes|Text)?|String(?:::from)?)\(){1,2}(?=\\?[\"']))?"
)
"""What a language puts around a text: `b'...'`, `Some("...")`."""
_JSON_KEY_VALUE_PATTERN = re.compile(rb"\"\s{0,64}:\s{0,64}" + _DOUBLE_QUOTED_VALUE_PATTERN)
_ASSIGNED_VALUE_PATTERN = re.compile(
    rb"[\"']?[ \t]*+(?::=|=>|[=:])[ \t]*+" + _VALUE_WRAPPER_PATTERN + _ANY_VALUE_PATTERN
)
_MARKED_VALUE_PATTERN = re.compile(
    rb"(?:[*`]{1,3}[ \t]{0,8}[:=][*`]{0,3}|[:=][*`]{1,3}|[:=][ \t]{1,8}[*`]{1,3})[ \t]{0,8}[*`]{0,3}"
    + _RANDOM_LOOKING_LOOKAHEAD
    + rb"([^\s\"'`*]{6,})"
)
_BLOCK_VALUE_PATTERN = re.compile(
    rb"[\"']?[ \t]{0,8}:[ \t]{0,8}[|>][+-]?\d?[ \t]{0,8}\r?\n[ \t]{1,64}([^\s:]{6,})(?=\s|\Z)"
)
_TABLE_VALUE_PATTERN = re.compile(
    rb"[*_`\"']{0,3}[ \t]{0,200}(?:\||\xe2\x94[\x82\x83])[ \t]{0,200}[*_`\"']{0,3}"
    + _RANDOM_LOOKING_LOOKAHEAD
    + rb"([^\s|\"'`*]{6,})"
)
_OPTION_VALUE_PATTERN = re.compile(rb"[ \t=\x00]++" + _ANY_VALUE_PATTERN)
_OPTION_PREFIX_PATTERN = re.compile(rb"(?<![\w-])--?[\w-]*\Z")
_SETTING_VALUE_PATTERN = re.compile(rb"[\"']?[ \t\x00]++[\"']?" + _RANDOM_LOOKING_LOOKAHEAD + rb"([^\s\"'\x00=]{6,})")
_SETTING_PREFIX_PATTERN = re.compile(
    rb"(?:\bset(?:env|x)?|\bconfig(?:ure)?)(?:[ \x00]-[\w-]*|[ \x00](?:set|add)){0,3}[ \x00][\"']?[\w:./@-]*\Z"
)
"""`set -x NAME VALUE`, `setenv NAME VALUE`, `aws configure set NAME VALUE`, `git config NAME VALUE`."""
_NESTED_OBJECT_VALUE_PATTERN = re.compile(
    rb"s?\"\s{0,64}:\s{0,64}\{\s{0,64}\"(?:value|raw|plain|data)\"\s{0,64}:\s{0,64}" + _DOUBLE_QUOTED_VALUE_PATTERN
)
_LIST_ITEM_VALUE_PATTERN = re.compile(
    rb"s?\"\s{0,64}:\s{0,64}\[\s{0,64}\"" + _RANDOM_LOOKING_LOOKAHEAD + rb"([^\s\"\\]{6,})\""
)
_NAME_VALUE_PAIR_PATTERN = re.compile(
    rb"([\"'])\s{0,64},\s{0,64}b?[\"']" + _RANDOM_LOOKING_LOOKAHEAD + rb"([^\s\"'\\]{6,})\1"
)
_SEPARATE_VALUE_FIELD_PATTERN = re.compile(
    rb"[\"']?\s{0,64},?\s{0,64}[\"']?(?:[vV]alue|VALUE)[\"']?\s{0,64}[:=]\s{0,64}(?:"
    + _QUOTED_VALUE_PATTERN
    + rb"|"
    + _RANDOM_LOOKING_LOOKAHEAD
    + _UNQUOTED_VALUE_PATTERN
    + rb")"
)
_XML_ELEMENT_VALUE_PATTERN = re.compile(
    rb"(?:\s[^<>]{0,200})?>\s{0,64}(?:<!\[CDATA\[\s{0,64}([^\s<>\]]{6,})\s{0,64}\]\]>|([^\s<>]{6,}))\s{0,64}</"
)
_XML_ELEMENT_PREFIX_PATTERN = re.compile(rb"<[\w:.-]*\Z")
_XML_NAMED_ENTRY_PATTERN = re.compile(
    rb"(?:[\"'][^<>]{0,100}>|</key>\s{0,64}<string>)\s{0,64}" + _RANDOM_LOOKING_LOOKAHEAD + rb"([^\s<>]{6,})\s{0,64}</"
)
_PATTERNS_AFTER_SECRET_NAME: tuple[tuple[str, re.Pattern[bytes], re.Pattern[bytes] | None], ...] = (
    ("value of a telling key", _JSON_KEY_VALUE_PATTERN, None),
    ("value of a telling name", _ASSIGNED_VALUE_PATTERN, None),
    ("value of a telling name", _MARKED_VALUE_PATTERN, None),
    ("value of a telling name", _BLOCK_VALUE_PATTERN, None),
    ("value of a telling row", _TABLE_VALUE_PATTERN, None),
    ("value of a telling option", _OPTION_VALUE_PATTERN, _OPTION_PREFIX_PATTERN),
    ("value of a telling setting", _SETTING_VALUE_PATTERN, _SETTING_PREFIX_PATTERN),
    ("value of a telling element", _XML_ELEMENT_VALUE_PATTERN, _XML_ELEMENT_PREFIX_PATTERN),
    *(("value within a telling key", look, None) for look in (_NESTED_OBJECT_VALUE_PATTERN, _LIST_ITEM_VALUE_PATTERN)),
    *(
        ("value beside a telling name", look, None)
        for look in (_NAME_VALUE_PAIR_PATTERN, _SEPARATE_VALUE_FIELD_PATTERN, _XML_NAMED_ENTRY_PATTERN)
    ),
)
"""What stands after a telling name, and what stands before it if the value is to be one."""
_TABLE_HEAD_PATTERN = re.compile(
    rb"(?:(?m:^)|(?<=\"))(?=[^\r\n]{0,400}(?i:password|passwd|secret|token|api_?key))"
    rb"[|\w \"'.-]{1,200}([,|;\t])[|,;\t\w \"'.-]{1,400}\r?(?m:$)"
)
_TABLE_CELL_PATTERN = re.compile(_RANDOM_LOOKING_LOOKAHEAD + rb"[^\s\"'|]{6,}\Z")
_TABLE_NAME_PATTERN = re.compile(
    rb"[\s\"'`*]*[\w.-]*?(?:%b)%b[\s\"'`*]*" % (_SECRET_NAME_ALTERNATIVES, _SECRET_NAME_SUFFIX)
)
_TABLE_RULE_PATTERN = re.compile(rb"[-+|=: ]+\r?")
_MAX_TABLE_ROWS = 1000
_NO_PLAIN_WORD_PATTERN = re.compile(rb"[0-9]|[a-z]+[A-Z]|[A-Z]{2,}[a-z]")
_CODE_EXPRESSION_PATTERN = re.compile(
    rb"(?:[A-Za-z_]+\.)+[A-Za-z_]+|[A-Z][A-Za-z]*<[A-Za-z<>:&, ]*|[A-Za-z_][\w.]*[(\[].*"
    rb"|(?:[\w.]*[_.]|[A-Za-z]*(?=[A-Z]))?(?i:" + _SECRET_NAME_ALTERNATIVES + rb")s?[})\]]*"
)
"""A call, a field, or a variable that is called as its value: `get_token()`, `self.token`, `user_password`."""
_MAX_OPTION_PREFIX_BYTES = 80
_PRIVATE_KEY_BEGIN_PATTERN = re.compile(
    rb"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|Private-Lines: \d{1,3}(?=\s)"
)
_PRIVATE_KEY_END_PATTERN = re.compile(rb"-----END [A-Z0-9 ]{0,60}-----|---- END [A-Z0-9 ]{0,60} ----|Private-MAC:")
_PRIVATE_KEY_END_WORDS = (b"-----END ", b"---- END ", b"Private-MAC:")
_MAX_PRIVATE_KEY_BYTES = 20_000
_PRINTABLE_RUN_PATTERN = re.compile(rb"[\t\r\n\x20-\x7e]{6,}")
_RANDOM_LOOKING_PATTERN = re.compile(rb"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])")
_WORD_CHARACTER_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_WORDS_OF_SECRET_NAMES = frozenset(
    (
        *("KEY", "APIKEY", "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASS", "PASSPHRASE", "PWD"),
        *("CREDENTIAL", "CREDENTIALS", "COOKIE", "DSN", "PAT", "JWT"),
    )
)
_LAST_WORDS_OF_SECRET_NAMES = frozenset({"AUTH", "AUTHORIZATION", "WEBHOOK"})
_HARMLESS_VARIABLE_NAMES = frozenset({"PWD", "OLDPWD"})
_HARMLESS_VALUE_PATTERN = re.compile(
    rb"(?i:(?:true|false|none|null)\W*|undefined|default|disabled|enabled|redacted\d*x*|x+|\*+|\.+|<.*|\$.*|%\w+%|\{.*"
    rb"|\[[\w ]+\]|string|object"
    rb"|required|optional|process\.env.*|os\.environ.*|(?:bearer|basic|token)(?: [$<{].*)?)|(?i:"
    + _SECRET_NAME_ALTERNATIVES
    + rb")"
)


def is_secret_name(name: str) -> bool:
    """Say whether an environment variable's name shows that its value is secret."""
    words = re.split(r"[_\-.]", name.upper())
    return name not in _HARMLESS_VARIABLE_NAMES and (
        not _WORDS_OF_SECRET_NAMES.isdisjoint(words) or words[-1] in _LAST_WORDS_OF_SECRET_NAMES
    )


def is_unlikely_secret(value: bytes) -> bool:
    """Say whether a value is too short, or too common a word, to be a secret; placeholders are."""
    return len(value) < MIN_SECRET_BYTES or _HARMLESS_VALUE_PATTERN.fullmatch(value) is not None


def find_secrets(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield what looks like a secret: its kind, and where it begins and ends. They may overlap."""
    for begin, text in _find_text_runs(data):
        small = text.lower()
        found = (
            *_find_keys_of_providers(text, small),
            *_find_secrets_by_context(text, small),
            *_find_named_secrets(text, small),
            *_find_table_cells(text, small),
            *_find_private_keys(text),
        )
        for kind, start, end in found:
            if not is_unlikely_secret(text[start:end]) or kind == "URL credentials":
                yield kind, begin + start, begin + end


def _find_keys_of_providers(
    text: bytes, small: bytes, joined: Container[int] = frozenset()
) -> Iterator[tuple[str, int, int]]:
    """Yield keys that stand apart from the letters before them, and are no words.

    Args:
        text: where they are looked for.
        small: the text in small letters.
        joined: where lines were joined: the letter before that place stands apart, too.
    """
    own = (
        (kind, *found.span())
        for kind, pattern in (*_PREFIXED_KEY_PATTERN_BY_KIND.items(), *_SHAPED_KEY_PATTERN_BY_KIND.items())
        if any(word in small for word in _REQUIRED_WORDS_BY_KIND[kind])
        for found in pattern.finditer(text)
    )
    for kind, start, end in itertools.chain(own, find_keys_with_library(text)):
        is_apart = not start or text[start - 1] not in _WORD_CHARACTER_BYTES or start in joined
        if is_apart and _NO_PLAIN_WORD_PATTERN.search(text, start, end):
            yield kind, start, end


def _find_secrets_by_context(text: bytes, small: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield what a command, a header, a URL or a sentence gives away."""
    for kind, pattern in _CONTEXT_PATTERN_BY_KIND.items():
        if all(word not in small for word in _REQUIRED_WORDS_BY_KIND[kind]):
            continue
        for found in pattern.finditer(text):
            start, end = found.span(1)
            if kind != "authorization header" or not _is_code_expression(text, start, end):
                yield kind, start, end


def _find_named_secrets(text: bytes, small: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the values of telling names: what stands after `password:`, `"token":` or `--secret`."""
    ends = dict.fromkeys(_PATTERNS_AFTER_SECRET_NAME, 0)
    for name in _SECRET_NAME_PATTERN.finditer(small):
        head = text[max(name.start() - _MAX_OPTION_PREFIX_BYTES, 0) : name.start()]
        for row in _PATTERNS_AFTER_SECRET_NAME:
            kind, tail, before = row
            if name.start() < ends[row] or (before is not None and not before.search(head)):
                continue
            if (found := tail.match(text, name.end())) is not None:
                ends[row] = found.end()
                start, end = found.span(found.lastindex or 0)
                if tail is _OPTION_VALUE_PATTERN or not _is_code_expression(text, start, end):
                    yield kind, start, end


def _find_table_cells(text: bytes, small: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the cells below a head that is a telling name, in CSV and in what databases print."""
    for head in _TABLE_HEAD_PATTERN.finditer(text):
        delimiter = head[1]
        names = small[head.start() : head.end()].split(delimiter)
        columns = {at for at, name in enumerate(names) if _TABLE_NAME_PATTERN.fullmatch(name)}
        at = head.end() + 1
        for _ in range(_MAX_TABLE_ROWS if columns else 0):
            end = text.find(b"\n", at)
            row = text[at : end if end >= 0 else len(text)]
            cells = row.split(delimiter)
            if len(cells) != len(names) and not _TABLE_RULE_PATTERN.fullmatch(row):
                break
            for column, cell in enumerate(cells):
                value = cell.strip(b" \t\r\"'`*")
                if column in columns and _TABLE_CELL_PATTERN.match(value):
                    start = at + cell.index(value)
                    yield "value in a telling column", start, start + len(value)
                at += len(cell) + 1
            if end < 0:
                break


def _is_code_expression(text: bytes, start: int, end: int) -> bool:
    """Say whether what stands there without quotes is an expression, whose value is not told."""
    is_bare = text[start - 1] not in b"\"'>"
    return is_bare and (
        text[end : end + 1] in (b"(", b"[") or _CODE_EXPRESSION_PATTERN.fullmatch(text, start, end) is not None
    )


def _find_private_keys(text: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield private keys: to their last line, to the quote that ends their text, or to the end of all."""
    for begin in _PRIVATE_KEY_BEGIN_PATTERN.finditer(text):
        limit = begin.end() + _MAX_PRIVATE_KEY_BYTES
        quote = text.find(b'"', begin.end(), limit)
        lasts = [text.find(word, begin.end(), limit if quote < 0 else quote) for word in _PRIVATE_KEY_END_WORDS]
        last = min((at for at in lasts if at >= 0), default=-1)
        end = _PRIVATE_KEY_END_PATTERN.match(text, last) if last >= 0 else None
        if end is not None:
            yield "private key", begin.start(), end.end()
        elif quote >= 0:
            yield "private key", begin.start(), quote
        elif limit >= len(text):
            yield "private key", begin.start(), len(text)


def find_wrapped_secrets(text: bytes, breaks: Sequence[int]) -> Iterator[tuple[str, int, int]]:
    """Yield secrets with a provider's prefix that the end of a line cuts.

    Args:
        text: the text of the joined lines.
        breaks: where lines were joined. The text after a break is part of a secret only if it looks random.
    """
    joined = frozenset(breaks)
    for kind, start, end in _find_keys_of_providers(text, text.lower(), joined) if breaks else ():
        inside = breaks[bisect_right(breaks, start) : bisect_left(breaks, end)]
        pieces = [text[begin:stop] for begin, stop in itertools.pairwise((*inside, end))]
        count = next((at for at, piece in enumerate(pieces) if not _RANDOM_LOOKING_PATTERN.match(piece)), len(pieces))
        if count:
            yield kind, start, (*inside, end)[count]


def _find_text_runs(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield where text begins, and the text: all of it, or of what is no UTF-8 the runs of letters."""
    try:
        data.decode()
    except UnicodeDecodeError:
        yield from ((run.start(), run[0]) for run in _PRINTABLE_RUN_PATTERN.finditer(data))
    else:
        yield 0, data
