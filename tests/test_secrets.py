"""Which texts hold a secret: a table of shapes that are refused, and one of texts that pass."""

import base64
import binascii
import functools
import json
import random
import re
import string
import threading
from collections.abc import Iterable

import pytest

from memd.entries.secret_shapes import TOKENS
from memd.entries.secrets import Secret, expanded, find_secrets, mask

_RANDOM = random.Random(7)  # the same in each run
ALPHANUMERIC = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
BASE32 = string.ascii_uppercase + "234567"
BASE64 = ALPHANUMERIC + "+/"
URL_SAFE = ALPHANUMERIC + "_-"
HEX = "0123456789abcdef"
DIGITS = "123456789"
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"


def run(length: int, alphabet: str = ALPHANUMERIC) -> str:
    return "".join(_RANDOM.choice(alphabet) for _ in range(length))


def with_checksum(length: int) -> str:
    """Return a run that ends as GitHub's and npm's tokens do: with its CRC-32 in base 62."""
    body = run(length)
    number, end = binascii.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, 62)
        end = BASE62[digit] + end
    return body + end.rjust(6, "0")


def web_token(payload: dict[str, object]) -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, payload)
    texts = (json.dumps(part, separators=(",", ":")).encode() for part in parts)
    return ".".join([*(base64.urlsafe_b64encode(text).rstrip(b"=").decode() for text in texts), run(43)])


def pem(kind: str, end: str = "\n") -> str:
    body = end.join(
        [
            "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ" + run(14),
            *(run(64, BASE64) for _ in "123456789"),
        ]
    )
    return f"-----BEGIN {kind}-----{end}{body}{end}-----END {kind}-----"


# Put together here, so that no scanner takes this file for a leak. None was ever valid.
SECRETS = {
    "AWS access key id": "AKIA" + run(16, BASE32),
    "AWS temporary access key id": "ASIA" + run(16, BASE32),
    "AWS secret in a credentials file": "aws_secret_access_key = " + run(40, BASE64),
    "AWS secret in a shell": "export AWS_SECRET_ACCESS_KEY=" + run(40, BASE64),
    "AWS secret in JSON": '"SecretAccessKey": "' + run(40, BASE64) + '"',
    "AWS secret in YAML": "secretAccessKey: " + run(40, BASE64),
    "AWS session token": "aws_session_token = IQoJb3JpZ2luX2Vj" + run(300, BASE64),
    "Azure storage": "AccountName=logs;AccountKey=" + run(86, BASE64) + "==;EndpointSuffix=core.windows.net",
    "Azure client secret": "AZURE_CLIENT_SECRET=" + run(3) + "8Q~" + run(34),
    "Azure service bus": "Endpoint=sb://logs.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey="
    + run(43, BASE64) + "=",
    "Azure shared access signature": "https://logs.blob.core.windows.net/c?sp=rwdl&sig=" + run(43)
    + "%3D",
    "Azure DevOps": run(76) + "AZDO" + run(4),
    "Google API key": "AIza" + run(35, URL_SAFE),
    "Google OAuth client secret": "GOCSPX-" + run(28, URL_SAFE),
    "Google refresh token": "1//0g" + run(95, URL_SAFE),
    "Google access token": "ya29.a0" + run(160, URL_SAFE),
    "Google service account": json.dumps({"type": "service_account", "private_key": pem("PRIVATE KEY")}),
    "GitHub personal": "ghp_" + with_checksum(30),
    "GitHub OAuth": "gho_" + with_checksum(30),
    "GitHub app": "ghs_" + with_checksum(30),
    "GitHub fine-grained": "github_pat_" + run(22) + "_" + run(59),
    "GitLab personal": "glpat-" + run(20),
    "GitLab runner": "glrt-" + run(20),
    "Slack bot": "xoxb-" + run(12, DIGITS) + "-" + run(13, DIGITS) + "-" + run(24),
    "Slack app": "xapp-1-A" + run(10, UPPER) + "-" + run(13, DIGITS) + "-" + run(64, HEX),
    "Slack webhook": "hooks.slack.com/services/T" + run(10, UPPER) + "/B" + run(10, UPPER) + "/" + run(24),
    "Discord webhook": "https://discord.com/api/webhooks/" + run(18, DIGITS) + "/" + run(68),
    "Discord bot": "MTA" + run(23) + "." + run(6) + "." + run(38, URL_SAFE),
    "Telegram bot": run(10, DIGITS) + ":AA" + run(33),
    "Twilio key": "TWILIO_API_KEY=SK" + run(32, HEX),
    "Twilio auth token": "TWILIO_AUTH_TOKEN=" + run(32, HEX),
    "Stripe secret": "sk_live_51" + run(97),
    "Stripe restricted": "rk_live_51" + run(97),
    "Stripe webhook": "whsec_" + run(32),
    "Square access": "EAAA" + run(60, URL_SAFE),
    "Square secret": "sq0csp-" + run(43, URL_SAFE),
    "Braintree": "access_token$production$" + run(16, LOWER) + "$" + run(32, HEX),
    "Shopify": "shpat_" + run(32, HEX),
    "Databricks": "dapi" + run(32, HEX),
    "xAI": "xai-" + run(80),
    "Supabase management": "sbp_" + run(40, HEX),
    "Supabase secret": "sb_secret_" + run(22, URL_SAFE) + "_" + run(8),
    "Supabase service role": web_token({"iss": "supabase", "role": "service_role", "exp": 2076000000}),
    "Anthropic": "sk-ant-api03-" + run(93, URL_SAFE) + "AA",
    "Anthropic OAuth": "sk-ant-oat01-" + run(93, URL_SAFE) + "AA",
    "OpenAI": "sk-" + run(20) + "T3BlbkFJ" + run(20),
    "OpenAI project": "sk-proj-" + run(74, URL_SAFE) + "T3BlbkFJ" + run(74, URL_SAFE),
    "OpenRouter": "sk-or-v1-" + run(64, HEX),
    "Hugging Face": "hf_" + run(34, string.ascii_letters),
    "Groq": "gsk_" + run(52),
    "Replicate": "r8_" + run(37),
    "Perplexity": "pplx-" + run(48),
    "NVIDIA": "nvapi-" + run(64, URL_SAFE),
    "Cerebras": "csk-" + run(48, LOWER),
    "ElevenLabs": "ELEVENLABS_API_KEY=sk_" + run(48, HEX),
    "LangSmith": "lsv2_pt_" + run(32, HEX) + "_" + run(10, HEX),
    "Pinecone": "pcsk_" + run(6) + "_" + run(63),
    "Mistral": "MISTRAL_API_KEY=" + run(32),
    "Cohere": "COHERE_API_KEY=" + run(40),
    "DeepSeek": "DEEPSEEK_API_KEY=sk-" + run(32, HEX),
    "npm": "npm_" + with_checksum(30),
    "PyPI": "pypi-AgEIcHlwaS5vcmc" + run(150, URL_SAFE),
    "RubyGems": "rubygems_" + run(48, HEX),
    "crates.io": "cio" + run(32),
    "Docker Hub": "dckr_pat_" + run(27, URL_SAFE),
    "SendGrid": "SG." + run(22, URL_SAFE) + "." + run(43, URL_SAFE),
    "Mailgun": "MAILGUN_API_KEY=key-" + run(32, HEX),
    "Mailchimp": "MAILCHIMP_KEY=" + run(32, HEX) + "-us12",
    "Postman": "PMAK-" + run(24, HEX) + "-" + run(34, HEX),
    "DigitalOcean": "dop_v1_" + run(64, HEX),
    "Heroku": "HRKU-AA" + run(58, URL_SAFE),
    "Fly.io": "FlyV1 fm2_" + run(500, BASE64),
    "Cloudflare": "CLOUDFLARE_API_TOKEN=" + run(40, URL_SAFE),
    "Netlify": "nfp_" + run(36),
    "Linear": "lin_api_" + run(40),
    "Notion": "ntn_" + run(11, DIGITS) + run(35),
    "Atlassian": "ATATT3xFfGF0" + run(172, URL_SAFE) + "=" + run(8, UPPER),
    "Figma": "figd_" + run(40, URL_SAFE),
    "Airtable": "pat" + run(14) + "." + run(64, HEX),
    "New Relic": "NRAK-" + run(27, UPPER),
    "Datadog": "DD_API_KEY=" + run(32, HEX),
    "Grafana": "glsa_" + run(32) + "_" + run(8, HEX),
    "Vault": "hvs." + run(24),
    "Terraform": run(14) + ".atlasv1." + run(66),
    "Doppler": "dp.pt." + run(43),
    "1Password": "ops_eyJ" + run(300),
    "PlanetScale": "pscale_tkn_" + run(43),
    "Tailscale": "tskey-auth-" + run(12) + "CNTRL-" + run(32),
    "age": "AGE-SECRET-KEY-1" + run(58, BECH32),
    "JSON web token": web_token({"sub": "8812", "role": "admin", "iat": 1761000000}),
    "RSA key": pem("RSA PRIVATE KEY"),
    "OpenSSH key": pem("OPENSSH PRIVATE KEY", end="\r\n"),
    "PGP key": pem("PGP PRIVATE KEY BLOCK"),
    "quoted key": pem("PRIVATE KEY", end="\n> "),
    "key in JSON": '"private_key": "' + pem("PRIVATE KEY", end="\\n") + '"',
    "encrypted key": "-----BEGIN EC PRIVATE " + "KEY-----\nProc-Type: 4,ENCRYPTED\n\n" + run(64, BASE64)
    + "\n",
    "key that is cut off": "-----BEGIN PRIVATE " + "KEY-----\nMIIEvQIBADANBgkq\n",
    "bearer header": "Authorization: Bearer " + run(40),
    "bearer in curl": "curl -H 'Authorization: Bearer " + run(40) + "' https://api.acme.dev/v1/me",
    "basic header": "Authorization: Basic " + base64.b64encode(b"deploy:" + run(20).encode()).decode(),
    "key in a header": "x-api-key: " + run(32),
    "password of a database": "postgres://app:" + run(16) + "@db.acme.dev:5432/app",
    "password of a page": "https://deploy:" + run(20) + "@git.acme.dev/x.git",
    "password of MongoDB": "mongodb+srv://app:" + run(16) + "@cluster0.ab1cd.mongodb.net/prod",
    "password of Redis": "redis://:" + run(24) + "@cache.acme.dev:6379/0",
    "netrc": "machine git.acme.dev login deploy password " + run(14),
    "Pulumi": "pul-" + run(40, HEX),
    "Artifactory": "AKCp" + run(69),
    "Typeform": "tfp_" + run(44, URL_SAFE) + "_" + run(14),
    "Facebook": "EAAM" + run(120),
    "Alibaba Cloud": "LTAI" + run(20),
    "Dropbox": "sl.u." + run(140, URL_SAFE),
    "Okta": "OKTA_API_TOKEN=00" + run(40, URL_SAFE),
    "Snyk": "SNYK_TOKEN=" + "-".join(run(length, HEX) for length in (8, 4, 4, 4, 12)),
}  # fmt: skip

HEADER = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"  # of nearly every web token
# What a table of documentation shows in the place of a secret, with where it is from.
EXAMPLES = [
    "AKIAIOSFODNN7EXAMPLE",  # AWS
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    '"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"',
    # jwt.io, before and after 2025, and PyJWT
    HEADER + ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ"
    ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    HEADER + ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiYWRtaW4iOnRydWUsImlhdCI6"
    "MTUxNjIzOTAyMn0.KMUFsIDTnFmyG3nMiGM6H9FNFUROf3wh7SmqJp-QV30",
    HEADER + ".eyJzb21lIjoicGF5bG9hZCJ9.4twFt5NiznN84AWoo1d7KO1T_yoc0Z6XOpOVswacPZg",
    "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",  # GitHub
    # Azurite
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    "Authorization: Bearer mF_9.B5f-4.1JqM",  # RFC 6750
    "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",  # RFC 7617
    "Authorization: Basic dXNlcm5hbWU6cGFzc3dvcmQK",
    "Authorization: Bearer YOUR_ACCESS_TOKEN_FROM_2026_GOES_HERE",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $GITHUB_TOKEN",
    "sk_test_" + "4eC39HqLyjWDarjtT1zdp7dc",  # Stripe
    "pk_live_" + "51H8abcdefghijklmnopqrstuv is public",
    "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",  # Slack
    "123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11",  # Telegram
    "postgres://user:password@localhost:5432/db",
    "postgres://app:password123@localhost/app",
    "postgresql://app:${DB_PASSWORD}@db/app",
    "postgresql://app:{{ db_password }}@db/app",
    "mongodb+srv://<username>:<password>@cluster0.mongodb.net/",
    "mongodb://user:password@cluster0.ab1cd.mongodb.net/db",
    "redis://:mypassword@localhost:6379",
    "amqp://guest:guest@localhost:5672/",
    "mysql://root:secret@127.0.0.1/db",
    "https://user:pass@example.com/",
    "https://me:xxxxxxxxxxxx@git.acme.dev/x.git",
    "https://me:********@git.acme.dev/x.git",
    "curl -u username:password https://api.acme.dev",
    "machine pypi.org login __token__ password <token>",
    "-----BEGIN PRIVATE " + "KEY-----\\nXXXX\\nXXXX\\n-----END PRIVATE " + "KEY-----",  # npm
    "-----BEGIN PRIVATE " + "KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC...\n-----END PRIVATE " + "KEY-----",
]

# What notes are full of: names that begin like a token, public identifiers, hashes, code.
NOT_SECRETS = [
    "sk-learn and sk-estimator-doc-link are not keys",
    '<div class="sk-container-id-1 sk-toggleable__content-wrapper-for-pipelines">',
    "task-0123456789abcdef0123456789abcdef01234567",
    "risk-assessment-2026-for-the-whole-platform-team-v2",
    "Set OPENAI_API_KEY=sk-... in the environment",
    "sk-proj-your-api-key-goes-here-please",
    "sk_live_... is in the vault",
    "ghp_xxxx is how a token starts; see GITHUB_TOKEN",
    "ghp_settings_page and gho_callback_handler_for_the_new_login_form_v2",
    "the commit 3f2504e04f8911d39a0c0305e82c3301a1b2c3d4 broke it",
    "git show e529564f5a7d3c1b2a4f6e8d9c0b1a2f3e4d5c6b:memd/api/get.py",
    "id 3F2504E0-4F89-11D3-9A0C-0305E82C3301",
    "sha256:" + run(64, HEX),
    "sha256-" + run(43, BASE64) + "=",
    "integrity sha512-" + run(86, BASE64) + "==",
    "md5 d41d8cd98f00b204e9800998ecf8427e",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA" + run(400, BASE64) + "==",
    "![](data:image/jpeg;base64,/9j/4AAQSkZJRgABAQAAAQABAAD" + run(400, BASE64) + ")",
    "AKIA is the prefix, the rest are 16 letters",
    "AKIAKOMBUNDSHIITAKE is no dashi",  # 15 after the prefix
    "arn:aws:iam::123456789012:user/AKIRA",
    "aws_secret_access_key = <in 1Password>",
    "secret_key_rotation happens every 90 days",
    "the secret key is that we ship small changes every day, and never on Friday afternoon",
    "xoxb-your-bot-token-from-the-settings-page",
    "https://discord.com/channels/123456789012345678/123456789012345678",
    "AIza is how Google keys start",
    "npm_config_registry=http://localhost:4873 npm_lifecycle_event_of_the_current_script",
    "pypi-attestations 0.0.22 and pypi-server",
    "hf_hub_download(repo_id=...) and hf_transfer",
    "eyJhbGciOiJIUzI1NiJ9 is base64 for a header",
    "`-----BEGIN RSA PRIVATE " + "KEY-----` means PKCS#1, `-----BEGIN PRIVATE " + "KEY-----` PKCS#8.",
    "-----BEGIN RSA PRIVATE " + "KEY-----\n...\n-----END RSA PRIVATE " + "KEY-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0B\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + run(64, BASE64) + "\n-----END CERTIFICATE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + run(43, BASE64) + " me@laptop",
    "age1" + run(58, BECH32.lower()) + " is a recipient",
    "call 0123456789:00 or write to AA",
    "PMID:12345678, doi:10.1038/s41586-021-03819-2",
    "The bearer of bad news-that-nobody-wanted arrived at 10:30",
    "Bearer tokens are checked by the gateway; see docs/authentication-and-authorization-2026.md",
    "ssh://git@github.com:22/memd.git and git@github.com:acme/memd.git",
    "http://localhost:8080/path@v1.2.3?sig=none",
    "const token = await getToken({ scope: 'read:user', retries: 3 })",
    "password: ask Ada; token: in the vault; api_key: see 1Password",
    "Okta, Twilio, Datadog and Cloudflare were compared on 2026-03-04",
    "SELECT secret_key FROM tenants WHERE id = 7",
    "分析パイプラインを実行する sk-",
    "uuid 01890a5d-ac96-774b-bcce-b302099a8057, 01ARZ3NDEKTSV4RRFFQ69G5FAV, nanoid V1StGXR8_Z5jdHi6B-myT",
    "ipfs QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPDfd, bitcoin 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    "docker pull ghcr.io/acme/memd@sha256:" + run(64, HEX),
    "https://youtu.be/dQw4w9WgXcQ https://docs.google.com/document/d/" + run(44, URL_SAFE) + "/edit",
    "AWS_REGION=eu-central-1 AWS_PROFILE=production-readonly-2026",
]
AROUND = [
    "{}", "The key is {}, keep it.", "密钥{}在这里", "token='{}'", "\n\n    {}\n", "({}).", "**{}**", "`{}`",
]  # fmt: skip


def in_place(around: str, text: str) -> str:
    return around.replace("{}", text)


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_a_secret_is_found_alone_in_a_sentence_and_next_to_han(text):
    for around in AROUND:
        whole = in_place(around, text)
        assert find_secrets(whole), around
        hidden = mask(whole)
        assert "[masked: " in hidden
        assert hidden.count("\n") == whole.count("\n"), "lines keep their numbers"
        assert mask(hidden) == hidden


@pytest.mark.parametrize("text", [*EXAMPLES, *NOT_SECRETS], ids=lambda text: text[:24])
def test_what_only_looks_like_a_secret_passes(text):
    for around in AROUND:
        assert find_secrets(in_place(around, text)) == [], around


SHAPES = [
    (row.split()[0], opening, row.split()[-1])
    for row in TOKENS.strip().splitlines()
    for opening in row.split()[1:-1]
]
BEHIND = [
    "{}", "https://acme.dev/{}", "acme.{}", "me@{}", "my-{}", "my_{}", "a%20{}", "a\\n{}", "a\\t{}",
    "one\n{}",
]  # fmt: skip


def written(shape: Iterable[tuple[object, object]]) -> str:
    """Return a random text of the shape that a parsed expression has."""
    text = ""
    for sort, told in shape:
        match str(sort), told:
            case "LITERAL", code:
                text += chr(code)
            case "IN", choices:
                text += _RANDOM.choice(characters(tuple(choices)))
            case "BRANCH", (_, branches):
                text += written(_RANDOM.choice(branches))
            case "SUBPATTERN", (*_, inner):
                text += written(inner)
            case "MAX_REPEAT" | "MIN_REPEAT", (least, most, inner):
                text += "".join(written(inner) for _ in range(min(max(least, 1), int(most))))
    return text


@functools.cache
def characters(choices: tuple[tuple[object, object], ...]) -> list[str]:
    """Return the characters of a class, only letters and digits where it has some."""
    among = [one for one in map(chr, range(33, 127)) if any(holds(choice, one) for choice in choices)]
    return [one for one in among if one.isalnum()] or among


def holds(choice: tuple[object, object], character: str) -> bool:
    match str(choice[0]), choice[1]:
        case "LITERAL", code:
            return ord(character) == code
        case "RANGE", (first, last):
            return first <= ord(character) <= last
        case "CATEGORY", category:
            return character.isdigit() if "DIGIT" in str(category) else character.isalnum()
    return False


@pytest.mark.parametrize(("kind", "opening", "rest"), SHAPES, ids=[opening for _, opening, _ in SHAPES])
def test_every_opening_of_the_table_is_found_to_the_end_of_its_token(kind, opening, rest):
    """A token of a row is masked as a whole; of eight that are written at random at least five."""
    parsed = re._parser.parse(expanded(rest))
    tokens = [opening + written(parsed) for _ in range(8)]
    found = [find_secrets(f"it is {token} since May") for token in tokens]
    whole = sum([(one.start, one.end) for one in secrets] == [(6, 6 + len(token))]
                for token, secrets in zip(tokens, found, strict=True))  # fmt: skip
    assert whole >= 5, (kind, tokens, found)


@pytest.mark.parametrize("behind", BEHIND)
def test_a_secret_is_found_behind_any_sign(behind):
    missed = [name for name, text in SECRETS.items() if not find_secrets(in_place(behind, text))]
    assert missed == []


def test_the_place_of_a_secret_is_exact():
    token = SECRETS["GitHub personal"]
    for before in ("before ", "vorher, für später: ", "鍵は ", "\udcff "):
        text = f"{before}{token} after"
        assert find_secrets(text) == [Secret("github-pat", len(before), len(before) + len(token))]
        assert mask(text) == f"{before}[masked: github-pat] after"


def test_of_an_address_only_the_password_is_masked():
    """Who may read the note sees which server and user it is about."""
    text = SECRETS["password of a database"]
    assert mask(text) == "postgres://app:[masked: generic-credential-uri]@db.acme.dev:5432/app"


@pytest.mark.parametrize("name", [name for name in SECRETS if "key" in name and "PRIVATE" in SECRETS[name]])
def test_no_line_of_a_private_key_is_left(name):
    hidden = mask(f"before\n{SECRETS[name]}\nafter")
    longest = max((len(word) for word in hidden.replace("\\n", " ").split()), default=0)
    assert longest < len("[masked:") + 10, hidden


def test_several_secrets_of_a_text_are_all_masked():
    texts = [SECRETS[name] for name in ("Groq", "Linear", "bearer header", "AWS secret in JSON")]
    hidden = mask("\n".join(f"{number}: {text}, and" for number, text in enumerate(texts)))
    assert hidden.count("[masked: ") == len(texts)
    assert [line[:3] for line in hidden.splitlines()] == ["0: ", "1: ", "2: ", "3: "]
    assert hidden.count(", and") == len(texts)


def test_a_text_without_secrets_is_masked_to_itself():
    text = "Grüße,\r\n\tthe 鶴 stands… \x00 \ud800"
    assert mask(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "sk-", "eyJ", "-----BEGIN RSA PRIVATE KEY-----\n", "a: b\n", "SG.", "xoxb-", "aws_secret_key  ", "a",
        "(", "é",
    ],
)  # fmt: skip
def test_the_largest_entry_is_searched_in_linear_time(piece):
    """A text of 256 KiB made to stall the patterns cannot (pytest would end a test that hangs)."""
    assert find_secrets(piece * (256 * 1024 // len(piece))) == []


def test_threads_share_one_scanner():
    found: list[Iterable[object]] = []
    threads = [
        threading.Thread(target=lambda: found.append([find_secrets(text) for text in SECRETS.values()]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one == found[0] for one in found)
    assert len(found) == len(threads)
