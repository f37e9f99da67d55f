"""Generated configurations by the thousand: memd's own goes in and out, and nothing else ever changes."""

import json
import random
import re
import tomllib
from pathlib import Path

import pytest
from tests_support import many

from memctl.agents import json_splice
from memctl.agents.edits import ByHandError, EditError, runs_memctl
from memctl.agents.json_file import Element, Entry, JsonFile
from memctl.agents.toml_file import TomlFile

SERVER = {
    "command": '/opt/ü "x"\\bin\x7f/memctl',
    "args": ["mcp", "--workspace", "/no tes"],
    "env_vars": ["A"],
}
TOML = TomlFile(Path("config.toml"), ("mcp_servers", "memd"), SERVER)
ENTRY = Entry(("mcpServers", "memd"), SERVER)
JSON = JsonFile(Path("mcp.json"), (ENTRY,))
HOOK = {"hooks": [{"type": "command", "command": "memctl hook claude-code Stop", "timeout": 5}]}
HOOKS = JsonFile(
    Path("settings.json"),
    (
        Element(("hooks", "Stop"), HOOK),
        Element(("hooks", "End"), HOOK),
        Element(("allow",), "memd", if_there=True),
    ),
)

TEXTS = many(2000)
VALUES = (
    '"x"', "'C:\\\\[mcp_servers.memd]'", "1_000", "-0.0", "nan", "inf", "1e400", "true", "07:32:00",
    "2026-05-01T07:32:00Z",
    '"""\n[mcp_servers.memd]\ncommand = "memctl"\nargs = ["mcp"]\n"""',
    "'''\n# no comment\n''''", '"""a"""""',
    '""""quoted" \\\n   on"""', '[\n  1, # one\n  ["mcp_servers"],\n]', '{ a = 1, b.c = "#" }',
    "[]", '"\\u00e4\\t#"',
    "[{ x = [\n[1],\n] }]",
)  # fmt: skip
KEYS = ("model", "sandbox_mode", '"a b"', "'#'", "a.b", '"mcp_servers.memd".c', "memd", "é".encode().hex())
# How others' servers may stand in a file; what holds "=" at its beginning belongs before any table
SERVERS = (
    'mcp_servers.github.command = "gh"\nmcp_servers.github.args = ["x"]',
    'mcp_servers."memd ".command = "x"', '[mcp_servers]\ngithub.command = "gh"', "[mcp_servers]",
    '[mcp_servers.github]\ncommand = "gh"\n\n[mcp_servers.github.env]\nA = "1"',
    ' [ mcp_servers . "github" ] # mine\nurl = "x"', "[mcp_servers.memd2]\nx = 1",
)  # fmt: skip
INLINE = ('mcp_servers = { github = { command = "gh" } }', "mcp_servers = {}")
HEADERS = ("[tui]", "[[profiles]]", '[projects."/home/[x]/#"]', "[a.memd]", "[profiles.deep]", "[[deep.er]]")
ENDS = ("", "\n", "\n\n", "\n# the end", "  # the end, without a newline", "\n   \n\t", "\n#\n")


def toml_text(chance):
    """Make one file: keys, dotted servers, then tables; most are TOML."""
    keys = chance.sample(KEYS, chance.randint(0, 4))
    parts = [f"{key} = {chance.choice(VALUES)}" for key in keys]
    servers = chance.choice((*SERVERS, *INLINE, ""))
    is_key = not servers.lstrip().startswith("[")
    parts += [servers] if is_key else []
    chance.shuffle(parts)
    tables = [
        "\n".join([header, *(f"{key} = {chance.choice(VALUES)}" for key in chance.sample(KEYS, 2))])
        for header in chance.sample(HEADERS, chance.randint(0, 3))
    ] + ([] if is_key else [servers])
    chance.shuffle(tables)
    text = chance.choice(("\n", "\n\n", "\n# between\n")).join([*parts, *tables]) + chance.choice(ENDS)
    text = text.replace("\n", "\r\n", chance.choice((-1, 1))) if chance.random() < 0.3 else text
    return f"\ufeff{text}" if chance.random() < 0.1 else text


def said(text):
    """Return what TOML says: memd's table, and all else; numbers as they are written."""
    parsed = tomllib.loads(text.removeprefix("\ufeff"), parse_float=str)
    servers = parsed.pop("mcp_servers", {})
    return servers.pop("memd", None), parsed | {"mcp_servers": servers}


def test_toml_of_any_shape_keeps_all_that_is_not_memds():
    chance, edited, refused = random.Random(18), 0, 0
    for _ in range(TEXTS):
        text = toml_text(chance)
        try:
            before = said(text)
        except tomllib.TOMLDecodeError:
            with pytest.raises(EditError):
                TOML.installed(text)
            continue
        if re.search(r"^\ufeff?mcp_servers = ", text, re.MULTILINE):
            with pytest.raises(ByHandError, match="an unusual form"):
                TOML.installed(text)
            refused += 1
            continue
        after = TOML.installed(text)
        edited += 1
        assert after.startswith(text)
        assert said(after) == (SERVER, before[1]), text
        assert (TOML.has(text), TOML.has(after)) == (False, True)
        assert TOML.installed(after) == after
        assert TOML.uninstalled(after, text) == text
        if edited % 4 == 0:
            expect_renewal_and_removal(text, after, before[1])
    assert edited > 0.35 * TEXTS
    assert refused > 0.04 * TEXTS


def expect_renewal_and_removal(text, after, others):
    """Renew the table with other options, let the client add something, and take the table out."""
    other = TomlFile(TOML.path, TOML.table, SERVER | {"args": ["mcp"]}).installed(after)
    assert said(other) == (SERVER | {"args": ["mcp"]}, others)
    changed = other + ("\n" if other.endswith("\n") else "\n\n") + "# later\n[later]\nx = 1\n"
    without = TOML.uninstalled(changed, text)
    assert said(without) == (None, others | {"later": {"x": 1}})
    assert without.startswith(text.rstrip("\r\n"))
    assert without.endswith("# later\n[later]\nx = 1\n")


@pytest.mark.parametrize(
    "own",
    [
        'mcp_servers.memd = { command = "memctl", args = ["mcp"] }',
        'mcp_servers.memd.command = "memctl"\nmcp_servers.memd.args = ["mcp"]',
        'mcp_servers = { memd = { command = "memctl", args = ["mcp"] } }',
        '[mcp_servers]\nmemd = { command = "memctl", args = ["mcp"] }',
        '[mcp_servers]\nmemd.command = "memctl"\nmemd.args = ["mcp"]',
    ],
)
def test_a_table_that_somebody_wrote_in_another_form_is_found_and_left(own):
    text = f"model = 'x'\n{own}\n[tui]\na = 1\n"
    assert TOML.has(text)
    for edit in (TOML.installed, lambda text: TOML.uninstalled(text, None)):
        with pytest.raises(ByHandError, match="an unusual form") as caught:
            edit(text)
        assert caught.value.lines.startswith("# below mcp_servers:\nmemd = { command = ")


def test_what_the_client_adds_to_memds_table_goes_with_it():
    text = "a = 1\n\n[tui]\nb = 2\n"
    ours = (
        TOML.installed(text)
        + 'enabled = true\nmore = [\n  "x",\n]\n\n[mcp_servers.memd.tools.search]\nmode = "x"\n'
    )
    assert TOML.uninstalled(ours, text) == text
    assert TOML.uninstalled(f"{ours}# mine\n", text) == f"{text}# mine\n"


def json_value(chance, depth=0):
    """Make any value, mostly small."""
    kind = chance.randint(0, 9 if depth < 3 else 6)
    if kind > 7:
        return [json_value(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    if kind > 6:
        return {word(chance): json_value(chance, depth + 1) for _ in range(chance.randint(0, 3))}
    return chance.choice((word(chance), 0, -1.5e300, 10**20, True, None, "", word(chance)))


def word(chance):
    """Make a text with what must be escaped, or looks like JSON."""
    return "".join(
        chance.choice(('"', "\\", "/*", "//", "ü", "\U0001f600", "{", "]", "\n", "a", ":", ","))
        for _ in range(3)
    )


def json_text(chance, value):
    """Write a value in one of many layouts."""
    indent = chance.choice((None, 0, 1, 2, 4, "\t", "\t\t"))
    separators = chance.choice((None, (",", ":"), (" , ", " : ")))
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=chance.random() < 0.5)
    text = text.replace("{}", chance.choice(("{}", "{ }", "{\n}"))) if '"' not in text else text
    text = f"{chance.choice(('', ' ', chr(10)))}{text}{chance.choice(('', chr(10), '  ' + chr(10)))}"
    text = text.replace("\n", "\r\n") if chance.random() < 0.3 else text
    return f"\ufeff{text}" if chance.random() < 0.1 else text


def parsed(text):
    """Return what JSON says."""
    return json.loads(text.removeprefix("\ufeff"))


def json_config(chance, *containers):
    """Make a configuration, with some of the containers that memd's own goes into."""
    config = {word(chance): json_value(chance) for _ in range(chance.randint(0, 3))}
    for key, inner in containers:
        if chance.random() < 0.6:
            config[key] = inner()
    members = list(config.items())
    chance.shuffle(members)
    return dict(members)


def test_json_of_any_layout_keeps_every_byte_around_what_is_put_in():
    chance = random.Random(18)
    for _ in range(many(1500)):
        config = json_config(
            chance,
            ("mcpServers", lambda: {word(chance): json_value(chance) for _ in range(chance.randint(0, 2))}),
        )
        text = json_text(chance, config)
        after = JSON.installed(text)
        assert parsed(after) == config | {"mcpServers": config.get("mcpServers", {}) | {"memd": SERVER}}
        assert list(parsed(after))[: len(config)] == list(config)
        added = len(after) - len(text)
        assert any(after[:at] + after[at + added :] == text for at in range(len(text) + 1)), (text, after)
        assert JSON.installed(after) == after
        assert (JSON.has(text), JSON.has(after)) == (False, True)
        gone = JSON.uninstalled(after, text)
        assert parsed(gone) == config
        later = JSON.uninstalled(json_splice.put(after, ["later"], 1), text)
        assert parsed(later) == config | {"later": 1}
        assert re.sub(r"\{\s+\}", "{}", gone) == re.sub(r"\{\s+\}", "{}", text)


def test_hooks_of_any_layout_keep_every_byte_around_what_is_appended():
    chance = random.Random(19)

    def groups():
        return [json_value(chance) for _ in range(chance.randint(1, 2))]

    for _ in range(many(1000)):
        config = json_config(
            chance,
            ("hooks", lambda: {key: groups() for key in ("Stop", "Other") if chance.random() < 0.5}),
            ("allow", groups),
        )
        text = json_text(chance, config)
        after = HOOKS.installed(text)
        hooks = config.get("hooks", {})
        wanted = config | {
            "hooks": hooks | {event: [*hooks.get(event, []), HOOK] for event in ("Stop", "End")}
        }
        wanted |= {"allow": [*config["allow"], "memd"]} if "allow" in config else {}
        # "memd" as an element of an allowlist is told from others' by is_own, which this one does not have
        assert parsed(after) == wanted
        gone = JsonFile(HOOKS.path, HOOKS.edits[:2]).uninstalled(after, text)
        assert parsed(gone) == config | ({"allow": wanted["allow"]} if "allow" in config else {})
        if "allow" not in config:
            assert re.sub(r"\{\s+\}", "{}", gone) == re.sub(r"\{\s+\}", "{}", text)


@pytest.mark.parametrize(
    "command",
    [
        "memctl hook claude-code Stop; ./mine.sh",
        "./mine.sh && memctl hook claude-code Stop",
        "memctl hook claude-code Stop;./mine.sh",
        "cd /srv&&memctl hook claude-code Stop",
        "memctl hook claude-code Stop | tee log",
        "memctl hook claude-code Stop\n./mine.sh",
    ],
)
def test_a_hook_of_the_users_that_calls_memctl_among_others_is_neither_doubled_nor_removed(command):
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}}, indent=2)
    stop = JsonFile(HOOKS.path, HOOKS.edits[:1])
    assert stop.installed(text) == text == stop.uninstalled(text, None)


def test_a_hook_that_names_an_operator_in_quotes_is_memds():
    assert runs_memctl({"command": "memctl -w '/a; b' mcp"}) is False  # mcp does not follow memctl
    assert runs_memctl({"command": "memctl hook claude-code Stop -w '/a; b & c'"})


def test_a_renewed_hook_keeps_what_the_user_added_to_it():
    hook = {"type": "command", "command": "/old/memctl hook claude-code Stop", "timeout": 60, "async": True}
    text = json.dumps({"hooks": {"Stop": [{"matcher": "*.py", "hooks": [hook]}], "Mine": []}}, indent=4)
    after = JsonFile(HOOKS.path, HOOKS.edits[:1]).installed(text)
    assert after == text.replace("/old/memctl", "memctl")


def test_json_with_comments_is_read_and_never_edited():
    chance = random.Random(20)
    for _ in range(many(1000)):
        config = json_config(chance, ("mcpServers", dict))
        with_memd = config | {"mcpServers": {"memd": SERVER}}
        for value in (config, with_memd):
            text = commented(chance, json.dumps(value, indent=2))
            assert JSON.has(text) == (value is with_memd), text
            assert value is config or JSON.installed(text) == text
            with pytest.raises(ByHandError, match="comments") as caught:
                JSON.uninstalled(text, None) if value is with_memd else JSON.installed(text)
            assert json.loads(caught.value.lines) == {"mcpServers": {"memd": SERVER}}


def commented(chance, text):
    """Put comments behind some lines, and commas behind some last members."""
    *lines, last = text.split("\n")
    for index, line in enumerate(lines):
        comma = "," if line.endswith(('"', "}", "]")) and chance.random() < 0.2 else ""
        comment = chance.choice(
            ("", "", ' // it\'s "memd": {', " /* [ , // */", "\n  // own line, }", "\t//")
        )
        lines[index] = line + comma + comment
    return "\n".join(["// first", *lines, last])


@pytest.mark.parametrize("opening", ["/*", ",/*", "'\\", '"\\', ",//x\n", ", ", "{'a':"])
def test_what_is_opened_and_never_closed_is_read_once(opening):
    """Text that is no JSON is refused in linear time: 1 MB took hours."""
    with pytest.raises(EditError):
        JSON.has('{"a": [' + opening * (1_000_000 // len(opening)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "mcpServers": {}, "a": 1}', "key 'a' twice"),
        ('{"mcpServers": {"x": {"b": 1, "b": 1}}}', "key 'b' twice"),
        ('{"x": NaN}', "NaN is not JSON"),
        ("{mcpServers: {}}", "not plain JSON"),
        ("{'x': 1}", "not plain JSON"),
        ('{"x": 1,}', "not plain JSON"),
    ],
)
def test_what_is_not_plain_json_is_left_to_its_owner(text, reason):
    with pytest.raises(ByHandError, match=reason) as caught:
        JSON.installed(text)
    assert json.loads(caught.value.lines) == {"mcpServers": {"memd": SERVER}}


@pytest.mark.parametrize(
    "text",
    ["{", '{"a"}', '{"a": }', '{"a": 1 "b": 2}', "{} {}", "[1, 2", '{"a": "', "// only a comment", "/* open",
     "[" * 100_000, '{"a": ' * 100_000, "[]", '"x"', '{"mcpServers": []}', '{"mcpServers": null}',
     '{"mcpServers": {"memd": {"command": "x"}}}'],
)  # fmt: skip
def test_what_memd_cannot_stand_in_is_refused(text):
    with pytest.raises(EditError) as caught:
        JSON.installed(text)
    assert not isinstance(caught.value, ByHandError)


@pytest.mark.parametrize("text", [None, "", " \n", "\ufeff", "\ufeff\r\n"])
def test_an_empty_file_is_an_empty_object(text):
    after = JSON.installed(text)
    assert parsed(after) == {"mcpServers": {"memd": SERVER}}
    assert after.startswith("\ufeff") == (text or "").startswith("\ufeff")
    assert TOML.installed(text).startswith(text or "")
    assert runs_memctl(said(TOML.installed(text))[0])
