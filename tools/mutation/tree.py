# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
"""A copy of the working tree, in which files are broken. It stays from run to run, so that Bazel stays warm in it.

A file of the copy that differs from the working tree's is written anew at each start, and no other is touched: so an
interrupted run leaves nothing behind.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import subprocess

from mutation.lists import Problem

LOCK = "mutate.lock"
# Where Bazel puts its links; .bazelrc says so.
LINKS = ".bazel"
# Ignored by git, and read by Bazel.
SETTINGS = "user.bazelrc"


def default_folder(checkout):
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "gcap-mutate", hashlib.sha256(checkout.encode()).hexdigest()[:12])


def git(checkout, *arguments):
    made = subprocess.run(["git", *arguments], cwd=checkout, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise Problem(f"git {' '.join(arguments)}: {made.stderr.strip().splitlines()[0]}")
    return made.stdout


def tracked(checkout):
    """The files of the working tree: those that git knows or would add."""
    listed = git(checkout, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    if os.path.exists(os.path.join(checkout, SETTINGS)):
        listed.append(SETTINGS)
    return sorted({name for name in listed if name and os.path.lexists(os.path.join(checkout, name))})


def what_is(path):
    """A file's mode and contents; of a link, where it leads to."""
    if os.path.islink(path):
        return "link", os.readlink(path).encode()
    if not os.path.isfile(path):
        return "none", b""
    with open(path, "rb") as file:
        return "program" if os.stat(path).st_mode & stat.S_IXUSR else "file", file.read()


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.remove(path)


def write(path, kind, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        remove(path)
    if kind == "link":
        os.symlink(content.decode(), path)
        return
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, 0o755 if kind == "program" else 0o644)


def remove_others(root, names):
    """Removes from the copy what is not in the working tree."""
    wanted = set(names)
    for folder, folders, files in os.walk(root, topdown=False):
        inside = os.path.relpath(folder, root)
        if inside == LINKS or inside.startswith(LINKS + "/"):
            continue
        for name in [*files, *folders]:
            path = os.path.join(folder, name)
            is_folder = os.path.isdir(path) and not os.path.islink(path)
            if os.path.relpath(path, root) in wanted or (folder == root and name == LINKS):
                continue
            if not is_folder or not os.listdir(path):
                remove(path)


class Copy:
    def __init__(self, checkout, folder):
        self.checkout = checkout
        self.folder = os.path.abspath(folder)
        self.root = os.path.join(self.folder, "tree")
        self.digest = ""
        self.stamp = {}  # see results.stamp
        self.lock = None

    def open(self):
        """Makes it like the working tree, and keeps others out of it."""
        if os.path.commonpath([self.folder, self.checkout]) == self.checkout:
            raise Problem(f"--copy '{self.folder}' is in the checkout: expected a folder elsewhere")
        lock = os.path.join(self.folder, LOCK)
        if os.path.isdir(self.folder) and os.listdir(self.folder) and not os.path.exists(lock):
            raise Problem(f"--copy '{self.folder}' has other files: expected an empty folder, or an earlier run's copy")
        os.makedirs(self.root, exist_ok=True)
        self.lock = open(lock, "w", encoding="utf-8")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Problem(f"another run is at work in '{self.folder}': wait, or choose another --copy") from error
        self.make_alike()

    def close(self):
        if self.lock is not None:
            self.lock.close()

    def make_alike(self):
        digest = hashlib.sha256()
        names = tracked(self.checkout)
        remove_others(self.root, names)
        for name in names:
            kind, content = what_is(os.path.join(self.checkout, name))
            if name != SETTINGS:
                digest.update(f"{name} {kind} {len(content)}\n".encode() + content)
            if what_is(os.path.join(self.root, name)) != (kind, content):
                write(os.path.join(self.root, name), kind, content)
        self.digest = digest.hexdigest()

    @contextlib.contextmanager
    def broken(self, name, text):
        """The copy with this text in the file."""
        path = os.path.join(self.root, name)
        kind, content = what_is(path)
        write(path, kind, text.encode())
        try:
            yield
        finally:
            write(path, kind, content)
