"""Build backend of the stand-in packages (PEP 517 and 660), which needs no package: a build has no network.

`stand_in.json` beside it says what to build. Files in /run/rig switch things on: where `faults/pip` names the package,
its build fails; while `hold/NAME` is there, it waits, and says so with `hold/NAME.reached`. Where `few-needs` is there,
a package needs of upstream's requirements only those that this file names, and one that it does not name is built from
the folder that `stand_in.json` calls `little`, and needs nothing.
"""

import base64
import hashlib
import json
import re
import time
import zipfile
from pathlib import Path
from typing import Any

KNOBS = Path("/run/rig")


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """PEP 517."""
    del config_settings, metadata_directory
    about = _about()
    folder = Path()
    few = _few()
    if few is not None and "little" in about and about["name"] not in few:
        folder, about = Path(about["little"]), {**about, "metadata": []}
    files = [path for top in about["packages"] for path in sorted((folder / top).rglob("*")) if path.is_file()]
    document = {str(path.relative_to(folder)): path.read_bytes() for path in files if path.suffix != ".pyc"}
    return write_wheel(wheel_directory, about, document)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """PEP 660."""
    del config_settings, metadata_directory
    about = _about()
    return write_wheel(wheel_directory, about, {f"__editable__.{about['name']}.pth": f"{Path.cwd()}\n".encode()})


def write_wheel(folder: str, about: dict[str, Any], files: dict[str, bytes]) -> str:
    """A wheel of these files; its file name. `about` is what `stand_in.json` says."""
    name, version = about["name"], about["version"]
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *about.get("metadata", []), *_needs(about)]
    about_it = f"{name.replace('-', '_')}-{version}.dist-info"
    files = {
        **files,
        f"{about_it}/METADATA": "\n".join([*metadata, ""]).encode(),
        f"{about_it}/WHEEL": b"Wheel-Version: 1.0\nGenerator: stand-in\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about_it}/entry_points.txt": about.get("entry_points", "").encode(),
    }
    record = "".join(f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in files.items())
    file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(Path(folder, file), "w") as archive:
        for path, content in {**files, f"{about_it}/RECORD": f"{record}{about_it}/RECORD,,\n".encode()}.items():
            archive.writestr(path, content)
    return file


def _needs(about: dict[str, Any]) -> list[str]:
    """Of upstream's own requirements files: `requirements.txt` is needed always, the others by the extra."""
    extra = about.get("extra", "")
    needs = [f"Provides-Extra: {extra}"] if extra else []
    few = _few()
    for file in (path for pattern in about.get("requirements", []) for path in sorted(Path().glob(pattern))):
        by_extra = f"extra == '{extra}'" if extra and str(file) != "requirements/requirements.txt" else ""
        for line in file.read_text().splitlines():
            requirement, _, marker = (part.strip() for part in re.sub(r"(^| )#.*", "", line).partition(";"))
            named = re.split(r"[^\w.-]", requirement)[0]
            if named and (few is None or named in few):
                conditions = " and ".join(filter(None, [marker and f"({marker})", by_extra]))
                needs.append(f"Requires-Dist: {requirement}" + (f" ; {conditions}" if conditions else ""))
    return needs


def _few() -> list[str] | None:
    """What is named of that which is needed; None where all of it is wanted."""
    return (KNOBS / "few-needs").read_text().split() if (KNOBS / "few-needs").exists() else None


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _about() -> Any:
    """What to build, once the switches let it."""
    about = json.loads(Path("stand_in.json").read_text())
    name = about["name"]
    fault, hold = KNOBS / "faults" / "pip", KNOBS / "hold" / name
    if fault.exists() and fault.read_text() == name:
        raise RuntimeError(f"stand-in: {name} cannot be built")
    while hold.exists():
        hold.with_name(f"{name}.reached").touch()
        time.sleep(0.1)
    return about
