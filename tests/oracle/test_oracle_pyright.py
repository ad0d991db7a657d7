"""Pyright infers what the files of tests/typing assert. mypy checks them as a part of the package.

It stands here since it brings a Node.js of 200 MB, which only this environment can bear.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_pyright_agrees_with_the_asserted_types(tmp_path: Path) -> None:
    # As pyright itself does by default, without what its fork adds.
    settings = {
        "include": [str(ROOT / "tests" / "typing")],
        "extraPaths": [str(ROOT / "python")],
        "pythonVersion": "3.11",
        "typeCheckingMode": "standard",
    }
    project = tmp_path / "pyrightconfig.json"
    project.write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--project", str(project)]
    done = subprocess.run([*command, "--outputjson"], capture_output=True, text=True, check=False, timeout=300)
    found = json.loads(done.stdout)
    errors = [
        f"{Path(e['file']).name}:{e['range']['start']['line'] + 1} {e['message']}" for e in found["generalDiagnostics"]
    ]
    assert errors == []
    assert found["summary"]["filesAnalyzed"] == len(list((ROOT / "tests" / "typing").glob("*.py")))
