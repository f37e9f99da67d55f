"""The list of figures names what exists: benchmarks with these options, folders, and runs by these names."""

from importlib import import_module
from pathlib import Path

import pytest

from tools.figures import FIGURES, REPOSITORY, Figure


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_names_a_benchmark_its_options_and_folders_that_exist(figure: Figure) -> None:
    module, *words = figure.command.split()
    path = Path(f"benchmarks/{module}.py")
    path = path if (REPOSITORY / path).is_file() else Path(f"benchmarks/{module}/__main__.py")
    source = (REPOSITORY / path).read_text(encoding="utf-8")
    import_module(".".join(path.with_suffix("").parts))  # what it takes from memd is still called so
    options = [word.removeprefix("--") for word in words if word.startswith("--")]

    assert [
        option for option in options if f'--{option}"' not in source and f'"{option}"' not in source
    ] == []
    assert [path for path in figure.measures if not (REPOSITORY / path).exists()] == []
    assert f'"{figure.name}"' in source
