import pytest

from memd.entries.secrets import KINDS, find_secrets

LETTERS = "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW0xY" * 4
HEX = "0123456789abcdef" * 8
UPPER = "Q7ZK3MN2PX5RT4WV6YB7" * 4

# Put together here, so that no scanner takes this file for a leak. None was ever valid.
SECRETS = {
    "AWS access key id": ["AKIA" + UPPER[:16], "ASIA" + UPPER[:16]],
    "AWS secret access key": [
        "aws_secret_access_key = " + LETTERS[:40],
        '"AWSSecretKey": "' + LETTERS[:40] + '"',
    ],
    "Azure storage account key": ["AccountKey=" + LETTERS[:86] + "=="],
    "GitHub token": [
        "ghp_" + LETTERS[:36],
        "gho_" + LETTERS[:36],
        "ghs_" + LETTERS[:36],
        "github_pat_" + LETTERS[:22] + "_" + LETTERS[:59],
    ],
    "GitLab token": ["glpat-" + LETTERS[:20]],
    "Slack token": ["xoxb-" + "123456789012-1234567890123-" + LETTERS[:24], "xapp-1-A012345-" + HEX[:40]],
    "Slack webhook": ["https://hooks.slack.com/services/" + "T0123ABCD/B0123ABCD/" + LETTERS[:24]],
    "Discord webhook": ["https://discord.com/api/webhooks/" + "123456789012345678/" + LETTERS[:68]],
    "Telegram bot token": ["123456789" + ":AA" + LETTERS[:33]],
    "Stripe live key": ["sk_live_" + LETTERS[:24], "rk_live_" + LETTERS[:24]],
    "Stripe webhook secret": ["whsec_" + LETTERS[:32]],
    "Google API key": ["AIza" + LETTERS[:35]],
    "Google OAuth client secret": ["GOCSPX-" + LETTERS[:28]],
    "Anthropic API key": ["sk-ant-" + "api03-" + LETTERS[:95]],
    "OpenAI API key": [
        "sk-" + "proj-" + LETTERS[:48],
        "sk-" + LETTERS[:48],
        "sk-" + "svcacct-" + LETTERS[:48],
    ],
    "OpenRouter API key": ["sk-or-v1-" + HEX[:64]],
    "Hugging Face token": ["hf_" + LETTERS[:34]],
    "npm token": ["npm_" + LETTERS[:36]],
    "PyPI token": ["pypi-AgEIcHlwaS5vcmc" + LETTERS[:60]],
    "Docker Hub token": ["dckr_pat_" + LETTERS[:27]],
    "SendGrid API key": ["SG." + LETTERS[:22] + "." + LETTERS[:43]],
    "DigitalOcean token": ["dop_v1_" + HEX[:64]],
    "Shopify token": ["shpat_" + HEX[:32]],
    "Vault token": ["hvs." + LETTERS[:24]],
    "Tailscale key": ["tskey-auth-" + LETTERS[:12] + "-" + LETTERS[:32]],
    "age secret key": ["AGE-SECRET-KEY-1" + UPPER[:58]],
    "JSON web token": ["eyJ" + LETTERS[:20] + ".eyJ" + LETTERS[:40] + "." + LETTERS[:43]],
    "private key": [
        "-----BEGIN RSA PRIVATE "
        "KEY-----\nMIIEowIBAAKCAQEA\n" + LETTERS[:64] + "\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE " + "KEY-----\r\nb3BlbnNzaC1rZXkt\r\n",
        "> -----BEGIN PRIVATE " + "KEY-----\n> MIIEvQIBADANBgkq\n",
        '"private_key": "-----BEGIN PRIVATE ' + 'KEY-----\\nMIIEvQIBADANBgkq\\n"',
        "-----BEGIN EC PRIVATE " + "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\nMHcCAQEEIIGl\n",
        "-----BEGIN PGP PRIVATE " + "KEY BLOCK-----\n\nlQOYBGV4aW0BCADH\n",
    ],
}

# What notes are full of: names that begin like a token, public identifiers, placeholders, documentation.
NOT_SECRETS = [
    "sk-learn and sk-estimator-doc-link are not keys",
    '<div class="sk-container-id-1 sk-toggleable__content-wrapper-for-pipelines">',
    "task-0123456789abcdef0123456789abcdef01234567",
    "risk-assessment-2026-for-the-whole-platform-team-v2",
    "Set OPENAI_API_KEY=sk-... in the environment",
    "sk-proj-your-api-key-goes-here-please",
    "sk_test_" + LETTERS[:24],
    "sk_live_... is in the vault",
    "ghp_xxxx is how a token starts; see GITHUB_TOKEN",
    "ghp_settings_page and gho_callback_handler_for_the_new_login_form_v2",
    "the commit 3f2504e04f8911d39a0c0305e82c3301a1b2c3d4 broke it",
    "id 3F2504E0-4F89-11D3-9A0C-0305E82C3301",
    "sha256-" + LETTERS[:43] + "=",
    "data:image/png;base64," + LETTERS,
    "AKIA is the prefix, the rest are 16 letters",
    "AKIAKOMBUNDSHIITAKE is no dashi",  # 15 after the prefix
    "arn:aws:iam::123456789012:user/AKIRA",
    "aws_secret_access_key = <in 1Password>",
    "secret_key_rotation happens every " + "90 days",
    "xoxb-your-bot-token-from-the-settings-page",
    "https://hooks.slack.com/services/T000/B000/XXX",
    "https://discord.com/channels/123456789012345678/123456789012345678",
    "AIza is how Google keys start",
    "npm_config_registry=http://localhost:4873 npm_lifecycle_event_of_the_current_script",
    "pypi-attestations 0.0.22 and pypi-server",
    "hf_hub_download(repo_id=...) and hf_transfer",
    "eyJhbGciOiJIUzI1NiJ9 is base64 for a header",
    "`-----BEGIN RSA PRIVATE " + "KEY-----` means PKCS#1, `-----BEGIN PRIVATE " + "KEY-----` PKCS#8.",
    "-----BEGIN RSA PRIVATE " + "KEY-----\n...\n-----END RSA PRIVATE " + "KEY-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0B\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIE\n-----END CERTIFICATE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + LETTERS[:43] + " me@laptop",
    "age1" + HEX[:58] + " is a recipient",
    "postgres://app:password@localhost/app",
    "call 0123456789:00 or write to AA",
    "PMID:12345678, doi:10.1038/s41586-021-03819-2",
    "分析パイプラインを実行する sk-",
]


@pytest.mark.parametrize(
    ("kind", "text"),
    [(kind, text) for kind, texts in SECRETS.items() for text in texts],
    ids=lambda v: v[:24],
)
def test_a_secret_is_found_alone_in_a_sentence_and_next_to_han(kind, text):
    """A token of a known shape is found with its kind, whatever ordinary text stands around it."""
    for around in ("{}", "The key is {}, keep it.", "密钥{}在这里", "token='{}'", "\n\n    {}\n"):
        kinds = {found.kind for found in find_secrets(around.format(text))}
        assert kinds == {kind}, around


def test_every_kind_has_an_example():
    """No pattern is in the list without a text that proves it."""
    assert set(KINDS) == set(SECRETS)


@pytest.mark.parametrize("text", NOT_SECRETS, ids=lambda v: v[:24])
def test_what_only_looks_like_a_secret_passes(text):
    """Names, hashes, public keys, placeholders and documentation are not refused."""
    assert list(find_secrets(text)) == []


def test_the_place_of_a_secret_is_exact():
    """Start and end cut the token and nothing else, so that it can be masked."""
    token = "ghp_" + LETTERS[:36]
    text = f"before {token} after"
    (found,) = find_secrets(text)
    assert text[found.start : found.end] == token


def test_the_largest_entry_is_searched_in_linear_time():
    """A text of 256 KiB made to stall the patterns cannot (pytest would end a test that hangs)."""
    for piece in (
        "sk-",
        "eyJ",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "a: b\n",
        "SG.",
        "xoxb-",
        "aws_secret_key  ",
    ):
        assert list(find_secrets(piece * (256 * 1024 // len(piece)))) == []
