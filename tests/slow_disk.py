"""A disk that is slow, or hangs for ever: calls on paths below a folder sleep before they are made."""

import shutil
import subprocess
from pathlib import Path

import pytest

# Which calls Python and the watcher make on a path; each sleeps until the file says 0 seconds.
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

static double seconds(void) {
    char text[32] = "0";
    int fd = syscall(SYS_openat, AT_FDCWD, getenv("MEMD_SLOW_SECONDS"), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) { ssize_t got = read(fd, text, 31); text[got > 0 ? got : 0] = 0; close(fd); }
    return atof(text);
}

static void wait_for(int dir, const char *path) {
    char whole[2 * PATH_MAX], link[64];
    const char *slow = getenv("MEMD_SLOW_BELOW");
    if (!slow || !path) return;
    whole[0] = 0;
    if (path[0] != '/') {
        if (dir == AT_FDCWD) return;
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        ssize_t got = syscall(SYS_readlinkat, AT_FDCWD, link, whole, PATH_MAX - 1);
        if (got < 0) return;
        whole[got] = '/'; whole[got + 1] = 0;
    }
    strncat(whole, path, PATH_MAX);
    if (strncmp(whole, slow, strlen(slow))) return;
    for (double began = now(); now() - began < seconds();) usleep(20000);
}

#define REAL(name) static typeof(&name) real; if (!real) real = (typeof(&name))dlsym(RTLD_NEXT, #name);
#define OPEN(name) int name(const char *path, int flags, ...) { REAL(name) va_list args; \
    va_start(args, flags); mode_t mode = va_arg(args, int); va_end(args); \
    wait_for(AT_FDCWD, path); return real(path, flags, mode); }
#define OPENAT(name) int name(int dir, const char *path, int flags, ...) { REAL(name) va_list args; \
    va_start(args, flags); mode_t mode = va_arg(args, int); va_end(args); wait_for(dir, path); \
    return real(dir, path, flags, mode); }
#define STAT(name, kind) int name(const char *restrict path, struct kind *restrict found) { REAL(name) \
    wait_for(AT_FDCWD, path); return real(path, found); }
#define STATAT(name, kind) int name(int dir, const char *restrict path, struct kind *restrict found, \
    int flags) { REAL(name) wait_for(dir, path); return real(dir, path, found, flags); }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)
STAT(stat, stat) STAT(lstat, stat) STAT(stat64, stat64) STAT(lstat64, stat64)
STATAT(fstatat, stat) STATAT(fstatat64, stat64)
int statx(int dir, const char *restrict path, int flags, unsigned mask, struct statx *restrict found) {
    REAL(statx) wait_for(dir, path); return real(dir, path, flags, mask, found); }
#include <dirent.h>
DIR *opendir(const char *path) { REAL(opendir) wait_for(AT_FDCWD, path); return real(path); }
int access(const char *path, int mode) { REAL(access) wait_for(AT_FDCWD, path); return real(path, mode); }
ssize_t readlink(const char *restrict path, char *restrict into, size_t size) {
    REAL(readlink) wait_for(AT_FDCWD, path); return real(path, into, size); }
#include <sys/statvfs.h>
int statvfs(const char *restrict path, struct statvfs *restrict found) {
    REAL(statvfs) wait_for(AT_FDCWD, path); return real(path, found); }
#include <sys/inotify.h>
int inotify_add_watch(int fd, const char *path, unsigned mask) {
    REAL(inotify_add_watch) wait_for(AT_FDCWD, path); return real(fd, path, mask); }
"""


class SlowDisk:
    """A folder whose calls take as long as the test says, in processes with its `environment`."""

    def __init__(self, folder: Path, below: Path) -> None:
        if not shutil.which("gcc"):
            pytest.skip("gcc is not installed, which builds the disk")
        self._seconds = folder / "seconds"
        self.take(0)
        library = folder / "slow.so"
        (folder / "slow.c").write_text(SOURCE)
        built = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", library, folder / "slow.c", "-ldl"]
        subprocess.run(built, check=True, cwd=folder)
        # For a daemon that is started under another program, even if that is `env`: no forked one loads it.
        self.environment = {  # MEMD_: a daemon drops what it does not know
            "LD_PRELOAD": str(library), "MEMD_SLOW_BELOW": str(below),
            "MEMD_SLOW_SECONDS": str(self._seconds),
        }  # fmt: skip

    def take(self, seconds: float) -> None:
        """Let each call take so long from now on, those that wait too; 1e9: it hangs."""
        fresh = self._seconds.with_suffix(".new")  # an empty file would be 0 seconds
        fresh.write_text(str(seconds))
        fresh.replace(self._seconds)
