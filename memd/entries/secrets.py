"""Detection of secrets of a known shape in a text.

Precision over recall: a pattern is listed only where the issuer gave its tokens a prefix or a frame that
ordinary text does not have. Guessing from entropy would refuse hashes, ids and base64 that notes are full
of. Pure; must not know who wrote the text or what happens to it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Not \b: a token glued to Chinese or Japanese text is a token all the same, and Han characters are \w.
_START = r"(?<![A-Za-z0-9_-])"
_END = r"(?![A-Za-z0-9])"
# "sk-" is also how CSS classes and shell variables begin: only a run with letters and digits counts.
_MIXED = r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])"
_NEWLINE = r"(?:[ \t]*(?:\r?\n|\\r\\n|\\n)[ \t>]*)"  # real, or escaped as in a JSON key file

# kind → pattern. The kind is what a refused caller reads, so it names issuer and sort.
_SHAPES: dict[str, str] = {
    "AWS access key id": rf"{_START}(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}{_END}",
    "AWS secret access key": r"(?i:aws_?secret_?(?:access_?)?key)[\"']?\s{0,3}[=:]\s{0,3}[\"']?"
    r"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])",
    "Azure storage account key": r"AccountKey=[A-Za-z0-9+/]{86}==",
    "GitHub token": rf"{_START}(?:gh[opusr]_[A-Za-z0-9]{{36,255}}|github_pat_[A-Za-z0-9_]{{40,255}}){_END}",
    "GitLab token": rf"{_START}gl(?:pat|dt|rt|cbt|ptt|agent|oas)-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{{20,}}",
    "Slack token": rf"{_START}(?:xox[abeoprs]|xapp)-(?=[A-Za-z-]*[0-9])[A-Za-z0-9-]{{20,}}",
    "Slack webhook": r"hooks\.slack\.com/(?:services|workflows)/T[A-Z0-9]{6,}/[AB][A-Z0-9]{6,}"
    r"/[A-Za-z0-9]{16,}",
    "Discord webhook": r"discord(?:app)?\.com/api/webhooks/[0-9]{15,20}/[A-Za-z0-9_-]{60,}",
    "Telegram bot token": r"(?<![0-9A-Za-z])[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])",
    "Stripe live key": rf"{_START}[rs]k_live_[A-Za-z0-9]{{16,}}",
    "Stripe webhook secret": rf"{_START}whsec_[A-Za-z0-9+/]{{32,}}",
    "Google API key": rf"{_START}AIza[A-Za-z0-9_-]{{35}}(?![A-Za-z0-9_-])",
    "Google OAuth client secret": rf"{_START}GOCSPX-[A-Za-z0-9_-]{{28}}(?![A-Za-z0-9_-])",
    "Anthropic API key": rf"{_START}sk-ant-[a-z]{{2,8}}[0-9]{{2}}-[A-Za-z0-9_-]{{16,}}",
    "OpenAI API key": rf"{_START}sk-(?:(?:proj|svcacct|admin|None)-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{{20,}}"
    rf"|{_MIXED}[A-Za-z0-9]{{20,}}{_END})",
    "OpenRouter API key": rf"{_START}sk-or-v1-[0-9a-f]{{64}}{_END}",
    "Hugging Face token": rf"{_START}(?:hf|api_org)_[A-Za-z0-9]{{34,}}{_END}",
    "npm token": rf"{_START}npm_[A-Za-z0-9]{{36}}{_END}",
    "PyPI token": rf"{_START}pypi-AgE[A-Za-z0-9_-]{{16,}}",
    "Docker Hub token": rf"{_START}dckr_(?:pat|oat)_[A-Za-z0-9_-]{{27,}}",
    "SendGrid API key": rf"{_START}SG\.[A-Za-z0-9_-]{{22}}\.[A-Za-z0-9_-]{{43}}(?![A-Za-z0-9_-])",
    "DigitalOcean token": rf"{_START}do[opr]_v1_[0-9a-f]{{64}}{_END}",
    "Shopify token": rf"{_START}shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{{32}}{_END}",
    "Vault token": rf"{_START}hv[sb]\.[A-Za-z0-9_-]{{24,}}",
    "Tailscale key": rf"{_START}tskey-(?:auth|api|client)-[A-Za-z0-9]{{8,}}-[A-Za-z0-9]{{16,}}",
    "age secret key": rf"{_START}AGE-SECRET-KEY-1[0-9A-Z]{{58}}{_END}",
    "JSON web token": rf"{_START}eyJ[A-Za-z0-9_-]{{10,}}\.eyJ[A-Za-z0-9_-]{{10,}}\.[A-Za-z0-9_-]{{16,}}",
    # The frame alone is what documentation quotes; only with a line of base64 under it is it a key.
    "private key": r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    rf"{_NEWLINE}{{1,3}}(?:[A-Za-z-]{{1,30}}: [^\r\n]{{0,200}}{_NEWLINE}{{1,3}}){{0,6}}"
    r"[A-Za-z0-9+/=]{4,}[ \t]*(?:[\r\n\\\"]|\Z)",
}
_PATTERNS = tuple((kind, re.compile(shape)) for kind, shape in _SHAPES.items())
KINDS = tuple(_SHAPES)


@dataclass(frozen=True, slots=True)
class Secret:
    """One stretch of a text that has the shape of a secret. It does not hold the secret."""

    kind: str
    start: int  # characters; text[start:end] is the secret
    end: int


def find_secrets(text: str) -> Iterator[Secret]:
    """Yield every secret of a known shape in *text*, kind by kind."""
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            yield Secret(kind, match.start(), match.end())
