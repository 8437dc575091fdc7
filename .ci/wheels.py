#!/usr/bin/env python3
"""Packs a program as a wheel, which pip, pipx and uv install: .ci/wheels.py FOLDER CONTENTS PLATFORM

CONTENTS is a folder with the program and its licences. The PLATFORM is, for example, linux-amd64.
Writes the wheel to FOLDER, always with the same bytes, and prints its name.

pre-commit installs this repository with pip, and pyproject.toml makes pip call `build_wheel`. That
package is empty, and depends on the wheel of this source's version.
"""

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CARGO = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
NAME = "multi-attach-guard"
# The programs for Linux are linked statically, so they run with every C library.
PLATFORMS = {
    "linux-amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux-arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin-amd64": "macosx_10_12_x86_64",
    "darwin-arm64": "macosx_11_0_arm64",
    "windows-amd64": "win_amd64",
}


def field(name):
    return re.search(f'^{name} = "(.*)"$', CARGO, re.MULTILINE)[1]


# Python writes 1.2.3rc1 for 1.2.3-rc.1.
VERSION = re.sub(r"-([a-z]+)\.", r"\1", field("version"))


def description():
    """The README, whose links and pictures are in the repository."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    places = {r"]\(": "blob", r'\b(?:src|srcset)="': "raw"}
    for start, view in places.items():
        address = f"{field('repository')}/{view}/v{field('version')}/"
        readme = re.sub(f"({start})(?!https?:|#)", rf"\1{address}", readme)
    return readme


def wheel(folder, name, platforms, programs=(), licences=(), further=()):
    """https://packaging.python.org/en/latest/specifications/binary-distribution-format/"""
    release = f"{name.replace('-', '_')}-{VERSION}"
    info = f"{release}.dist-info"
    metadata = [
        "Metadata-Version: 2.4",
        f"Name: {name}",
        f"Version: {VERSION}",
        f"Summary: {field('description')}",
        f"Project-URL: Repository, {field('repository')}",
        f"License-Expression: {field('license')}",
        *(f"License-File: {file.name}" for file in licences),
        "Requires-Python: >=3.7",
        *further,
        "Description-Content-Type: text/markdown",
        "",
        description(),
    ]
    about = ["Wheel-Version: 1.0", "Generator: .ci/wheels.py", "Root-Is-Purelib: false"]
    about += [f"Tag: py3-none-{platform}" for platform in platforms.split(".")]
    files = {f"{release}.data/scripts/{file.name}": file.read_bytes() for file in programs}
    files |= {f"{info}/licenses/{file.name}": file.read_bytes() for file in licences}
    for file, lines in [("METADATA", metadata), ("WHEEL", about)]:
        files[f"{info}/{file}"] = "".join(f"{line}\n" for line in lines).encode()
    record = ""
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        record += f"{path},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    file = f"{release}-py3-none-{platforms}.whl"
    with zipfile.ZipFile(Path(folder, file), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            # Made in 1980, as a zip archive counts.
            entry = zipfile.ZipInfo(path)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            archive.writestr(entry, content)
    return file


def build_wheel(folder, config_settings=None, metadata_directory=None):
    """https://peps.python.org/pep-0517/"""
    return wheel(folder, f"{NAME}-hook", "any", further=[f"Requires-Dist: {NAME}=={VERSION}"])


def main():
    folder, contents, platform = sys.argv[1:]
    program = Path(contents, NAME + (".exe" if platform.startswith("windows-") else ""))
    licences = sorted(Path(contents).glob("*LICENSE*"))
    print(wheel(folder, NAME, PLATFORMS[platform], [program], licences))


if __name__ == "__main__":
    main()
