"""Starts a command in a box: enters its namespaces, mounts what it may see, and gives all privileges away.

The worker runs this file by its path, with `-I -S`; standard library only, and one file, since it is the only
one of ours that is mounted into the box. `enter` stands outside the box.
It either starts bubblewrap, which makes the namespaces and mounts and runs this file again inside, as
`finish`, or does the same by the kernel's own calls. `finish` sets what bubblewrap can't: how many files a
file system in memory may hold, a writable layer over the checkout, limits, and the account.

    launcher.py enter SETTINGS COMMAND [ARGUMENT]...

SETTINGS are a `Settings` as `write_settings` writes it.

Exit status: the command's, or 128 + N where signal N ended it; 125 where the box could not be made.
"""

from __future__ import annotations

import ctypes
import fcntl
import marshal
import os
import resource
import select
import signal
import struct
import sys

# By this name those who check types know it. Each command in a box waits for two starts, of which the imports
# of `typing`, `json`, `pathlib` and `contextlib` would be more than half.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypedDict

    class Settings(TypedDict):
        """What makes one box."""

        kind: str  # bubblewrap or namespaces
        program: str  # bubblewrap's path
        python: str  # to run this file by inside
        account: int | None  # that the command gets; None where the worker isn't root and keeps its own
        device_groups: list[int]
        network: bool  # the host's; without it there is a loopback alone
        ports: list[int] | None  # the only ones to connect to; None for all
        groups: list[str]  # files of control groups into which this process writes itself
        mounts: list[list[Any]]  # in their order: a kind and its words, see `mount_one`
        private: list[str]  # folders that are empty and its own
        layered: str | None  # the checkout over which the command may write, if any
        disk: int  # bytes of its file system in memory
        files: int  # that such a file system may hold
        shared_memory: int  # bytes
        limits: dict[str, int]  # by the name in `resource`
        folder: str  # in which the command begins


NOT_MADE = 125
# Where the inside finds this file.
INSIDE = "/run/box_launcher.py"
# Folders on the file system of /tmp: the command's own ones, and the layer over its checkout.
OWN_FOLDERS, LAYERS = "/tmp/.paceline-own", "/tmp/.paceline-layers"  # noqa: S108 - inside the box, where /tmp is its own

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_SLAVE = 4096, 16384, 1 << 19
MNT_DETACH = 2
# The same number on every architecture; there since Linux 5.12.
SYS_MOUNT_SETATTR = 442
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SYS_KEYCTL = {"x86_64": 250, "aarch64": 219, "ppc64le": 271, "riscv64": 219, "s390x": 280}
KEYCTL_JOIN_SESSION_KEYRING = 1
# Landlock, the same numbers everywhere: rules on ports since version 4, on abstract sockets since 6.
SYS_LANDLOCK_CREATE, SYS_LANDLOCK_ADD, SYS_LANDLOCK_RESTRICT = 444, 445, 446
LANDLOCK_CREATE_RULESET_VERSION, LANDLOCK_RULE_NET_PORT = 1, 2
LANDLOCK_ACCESS_NET_CONNECT_TCP, LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET = 2, 1
PORTS_VERSION, SCOPES_VERSION = 4, 6
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 1, 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
CAPABILITY_VERSION = 0x20080522
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
# What `finish` needs: mounting, the account, the sysctl of its user namespace, folders of other owners.
CAPABILITIES = ("SYS_ADMIN", "SETUID", "SETGID", "SYS_RESOURCE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL")
# Read before the namespaces are entered: in one without a map every id reads as nobody's.
OWN_UID, OWN_GID = os.geteuid(), os.getegid()

libc = ctypes.CDLL(None, use_errno=True)


# System calls.


def check_call(result: int, what: str) -> int:
    """Raise OSError, which names what was tried, where a call of the C library failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def call_mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Call mount(2)."""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    check_call(libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None), f"mount {target}")


def set_process_option(option: int, value: int, argument: int = 0) -> None:
    """Call prctl(2)."""
    check_call(libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(argument), 0, 0), f"prctl {option}")


def make_read_only(target: str) -> None:
    """Make a mount and those below it read-only, whatever other flags they have."""
    attributes = struct.pack("QQQQ", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0, 0, 0)
    numbers = [ctypes.c_long(number) for number in (SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, 32)]
    call, start, flags, size = numbers
    check_call(libc.syscall(call, start, os.fsencode(target), flags, attributes, size), f"mount {target}")


def write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# Settings.


def write_settings(settings: Settings) -> str:
    """One word that `read_settings` reads, in the same version of Python."""
    return marshal.dumps(settings).hex()  # type: ignore[arg-type]  # a plain dictionary at run time


def read_settings(word: str) -> Settings:
    # What the worker wrote for itself: whoever else could would have the command changed as well.
    read: Settings = marshal.loads(bytes.fromhex(word))  # noqa: S302
    return read


# Outside the box.


def enter_box(settings: Settings, command: list[str]) -> int:
    """Start the command in the box and wait for its end; its exit status."""
    # The account is to enter the folders on the way to each mount.
    os.umask(0o022)
    for group in settings["groups"]:
        write_text(group, str(os.getpid()))
    # Who ends the tree begins with a polite signal to all of it; the box must not fall before its content.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if settings["kind"] == "bubblewrap":
        start_bubblewrap(settings, command)
    return start_namespaces(settings, command)


def identity_map(account: int | None, own: int, others: Sequence[int] = ()) -> str:
    """The ids in the box: root, the account and others where root starts it, else the worker's own."""
    ids = [own] if account is None else [0, account, *others]
    return "".join(f"{number} {number} 1\n" for number in ids)


def write_identity_maps(process: int | str, account: int | None, groups: Sequence[int]) -> None:
    """Fill the maps of a process's new user namespace; `groups` are those of devices."""
    if account is None:
        write_text(f"/proc/{process}/setgroups", "deny")
    write_text(f"/proc/{process}/uid_map", identity_map(account, OWN_UID))
    write_text(f"/proc/{process}/gid_map", identity_map(account, OWN_GID, groups))


def start_bubblewrap(settings: Settings, command: list[str]) -> None:
    """Become bubblewrap."""
    options = bubblewrap_options(settings)
    if settings["account"] is None:
        options.append("--unshare-user")
    else:
        # Of itself bubblewrap would map the account to root.
        options += ["--userns", str(prepare_user_namespace(settings["account"], settings["device_groups"]))]
    inside = [settings["python"], "-I", "-S", INSIDE, "finish", write_settings(settings), *command]
    program = settings["program"]
    os.execv(program, [program, *options, "--", *inside])  # noqa: S606 - a list of arguments, and no shell


def bubblewrap_options(settings: Settings) -> list[str]:
    """The arguments of bubblewrap for namespaces and mounts."""
    options = ["--unshare-pid", "--unshare-ipc", "--as-pid-1", "--die-with-parent", "--cap-drop", "ALL"]
    options += [] if settings["network"] else ["--unshare-net"]
    for name in CAPABILITIES:
        options += ["--cap-add", f"CAP_{name}"]
    made = {"/"}
    for kind, *words in settings["mounts"]:
        options += folders_above(mount_target(kind, words), made)
        match kind, words:
            case "bind", [source, target, writable]:
                options += ["--bind" if writable else "--ro-bind", source, target]
            case "device", [path]:
                options += ["--dev-bind", path, path]
            case "tmpfs", [path]:
                options += ["--perms", "1777", "--tmpfs", path]
            case "symlink", [text, path]:
                options += ["--symlink", text, path]
            case "file", [text, path]:
                options += ["--perms", "0644", "--file", str(hold_text(text)), path]
            case "proc", [path]:
                options += ["--proc", path]
            case _, [path]:
                options += ["--perms", "0755", "--dir", path]
    return [*options, "--remount-ro", "/"]


def mount_target(kind: str, words: list[Any]) -> str:
    """The path of a mount in the box."""
    return str(words[1] if kind in ("bind", "symlink", "file") else words[0])


def folders_above(target: str, made: set[str]) -> list[str]:
    """Options that make the folders on the way to a mount: by itself bubblewrap makes them for root alone."""
    folder = os.path.dirname(target)
    if folder in made:
        return []
    made.add(folder)
    return [*folders_above(folder, made), "--perms", "0755", "--dir", folder]


def hold_text(text: str) -> int:
    """A file descriptor that survives exec and reads the text."""
    descriptor = os.memfd_create("box", 0)
    os.write(descriptor, text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def prepare_user_namespace(account: int, groups: Sequence[int]) -> int:
    """A user namespace with root and the account in it, as an open file that survives exec."""
    ready, gone = os.pipe(), os.pipe()
    holder = os.fork()
    if holder == 0:
        try:
            os.close(gone[1])
            check_call(libc.unshare(CLONE_NEWUSER), "unshare")
            os.write(ready[1], b"1")
            os.read(gone[0], 1)
        finally:
            os._exit(0)
    os.close(ready[1])
    if not os.read(ready[0], 1):
        raise OSError(1, "no user namespace can be made", "unshare")
    write_identity_maps(holder, account, groups)
    namespace = os.open(f"/proc/{holder}/ns/user", os.O_RDONLY)
    os.set_inheritable(namespace, True)
    os.close(gone[1])
    os.waitpid(holder, 0)
    return namespace


def start_namespaces(settings: Settings, command: list[str]) -> int:
    """Do what bubblewrap does by the kernel's own calls, and wait for the first process of the box."""
    enter_user_namespace(settings["account"], settings["device_groups"])
    flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | (0 if settings["network"] else CLONE_NEWNET)
    check_call(libc.unshare(flags), "unshare")
    # Closed by the kernel when this process ends: whoever reads sees that.
    lifeline, held = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(held)
        run_child(lambda: build_box(settings, command, lifeline))
    os.close(lifeline)
    return shell_status(os.waitpid(first, 0)[1])


def enter_user_namespace(account: int | None, groups: Sequence[int]) -> None:
    """Enter a new user namespace; a map of two ids can only be written from outside of it."""
    parent, ready = os.getpid(), os.pipe()
    mapper = os.fork()
    if mapper == 0:
        os.close(ready[1])
        run_child(lambda: write_identity_maps(parent, account, groups) if os.read(ready[0], 1) else None)
    os.close(ready[0])
    reaper = os.getppid()
    check_call(libc.unshare(CLONE_NEWUSER), "unshare")
    if account is None:
        write_identity_maps("self", None, ())
    else:
        os.write(ready[1], b"1")
    os.close(ready[1])
    if os.waitpid(mapper, 0)[1] != 0:
        raise OSError(1, "the ids of a user namespace can't be mapped", "uid_map")
    die_with_parent(lambda: os.getppid() == reaper)


def run_child(act: Callable[[], int | None]) -> None:
    """In a forked child: do it and end, never returning into the parent's code."""
    status = NOT_MADE
    try:
        status = act() or 0
    except OSError as error:
        print_failure(error)
    finally:
        os._exit(status)


def die_with_parent(parent_lives: Callable[[], bool]) -> None:
    """Have the kernel kill this process when its parent ends; at once where it has."""
    set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
    if not parent_lives():
        os._exit(NOT_MADE)


def shell_status(status: int) -> int:
    """A wait status as a shell counts it."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


# Inside the box.


def build_box(settings: Settings, command: list[str], lifeline: int) -> int:
    """In the first process of the new namespaces: make the box and run the command; its exit status."""
    if not settings["network"]:
        bring_loopback_up()
    mount_all(settings["mounts"])
    finish_box(settings)
    return run_first_process(settings, command, lambda: not select.select([lifeline], [], [], 0)[0])


def run_first_process(settings: Settings, command: list[str], parent_lives: Callable[[], bool]) -> int:
    """Run the command as the box's init, whose end is the end of everything in the box; its exit status.

    Where root started the box, this process stays root's, without a capability: only then may its parent's
    end be its own, and nobody in the box can send it a signal.
    """
    die_with_parent(parent_lives)
    # Nobody in the box is to look into this process, which has seen the outside.
    set_process_option(PR_SET_DUMPABLE, 0)
    root = os.fork()
    if root == 0:
        run_child(lambda: become_command(settings, command))
    drop_capabilities()
    while True:
        ended, status = os.wait()
        if ended == root:
            return shell_status(status)


def bring_loopback_up() -> None:
    """Set the flag of `lo`, which is down in a new network namespace."""
    # Not above: bubblewrap does this itself, and the import takes an eighth of a start.
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(asked, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(asked, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


# Inside the box: its files.


def mount_all(mounts: list[list[Any]]) -> None:
    """Put the new root together beside the old one, and leave the old one."""
    call_mount("none", "/", None, MS_SLAVE | MS_REC)
    call_mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")  # noqa: S108 - any folder serves
    os.chdir("/tmp")  # noqa: S108
    for name in ("old", "new"):
        os.mkdir(name)
    call_mount("tmpfs", "new", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=16m")
    check_call(libc.pivot_root(b".", b"old"), "pivot_root")
    os.chdir("/")
    for kind, *words in mounts:
        mount_one(kind, words)
    check_call(libc.umount2(b"/old", MNT_DETACH), "umount")
    os.chdir("/new")
    check_call(libc.pivot_root(b".", b"."), "pivot_root")
    check_call(libc.umount2(b".", MNT_DETACH), "umount")
    os.chdir("/")
    call_mount("none", "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def mount_one(kind: str, words: list[Any]) -> None:
    """One of the mounts, of /old below /new."""
    target = f"/new{mount_target(kind, words)}"
    match kind, words:
        case "bind", [source, _, writable]:
            make_mount_point(target, folder=os.path.isdir(f"/old{source}"))
            call_mount(f"/old{source}", target, None, MS_BIND | MS_REC)
            if not writable:
                make_read_only(target)
        case "device", [path]:
            make_mount_point(target, folder=os.path.isdir(f"/old{path}"))
            call_mount(f"/old{path}", target, None, MS_BIND | MS_REC)
        case "tmpfs", _:
            make_mount_point(target, folder=True)
            call_mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
        case "proc", _:
            make_mount_point(target, folder=True)
            call_mount("proc", target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        case "symlink", [text, _]:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(text, target)
        case "file", [text, _]:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            write_text(target, text)
        case _:
            os.makedirs(target, exist_ok=True)


def make_mount_point(target: str, *, folder: bool) -> None:
    """An empty folder or file, unless something is there."""
    if os.path.exists(target):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if folder:
        os.mkdir(target)
    else:
        write_text(target, "")


def finish_box(settings: Settings) -> None:
    """What is left once the mounts stand: limits on space, own folders, and the layer over the checkout."""
    os.umask(0o022)
    limit_space("/tmp", settings["disk"], settings["files"])  # noqa: S108 - the box's own
    limit_space("/dev/shm", settings["shared_memory"], settings["files"])  # noqa: S108
    owner = OWN_UID if settings["account"] is None else settings["account"]
    for number, path in enumerate(settings["private"]):
        folder = f"{OWN_FOLDERS}/{number}"
        make_own_folder(folder, owner)
        call_mount(folder, path, None, MS_BIND)
    if settings["layered"]:
        add_layer(settings["layered"], owner)
    # A user namespace of its own would let it mount file systems without a limit.
    write_text("/proc/sys/user/max_user_namespaces", "0")


def limit_space(path: str, size: int, files: int) -> None:
    """Bound a file system in memory: bytes, and how many files it holds."""
    flags = MS_REMOUNT | MS_NOSUID | MS_NODEV
    call_mount("tmpfs", path, "tmpfs", flags, f"size={size},nr_inodes={files}")


def make_own_folder(path: str, owner: int) -> None:
    os.makedirs(path, mode=0o755)
    os.chown(path, owner, -1)


def add_layer(checkout: str, owner: int) -> None:
    """Let the command write beside its code: into a layer over the checkout, which ends with the box."""
    upper, work = f"{LAYERS}/upper", f"{LAYERS}/work"
    make_own_folder(work, owner)
    if os.stat(checkout).st_uid == owner:  # followed, as the mount does
        make_own_folder(upper, owner)
    else:
        copy_folders(checkout, upper, owner)
    call_mount("overlay", checkout, "overlay", MS_NOSUID | MS_NODEV, overlay_options(checkout, upper, work))
    # The layer is reached through the checkout alone.
    call_mount("tmpfs", LAYERS, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k,mode=0555")


def overlay_options(lower: str, upper: str, work: str) -> str:
    """The folders of an overlay; what separates its options is escaped in paths."""
    escaped = lower.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
    return f"lowerdir={escaped},upperdir={upper},workdir={work},userxattr"


def copy_folders(source: str, target: str, owner: int) -> None:
    """The folders of a tree without their files, for another owner: in these it may write."""
    make_own_folder(target, owner)
    for folder, below, _ in os.walk(source):
        inside = os.path.relpath(folder, source)
        for name in below:
            if not os.path.islink(f"{folder}/{name}"):
                make_own_folder(f"{target}/{inside}/{name}", owner)


# Inside the box: limits, privileges and the command.


def lower_limit(kind: int, limit: int) -> None:
    """Set a soft and hard limit; the hard one that we have is never raised."""
    hard = resource.getrlimit(kind)[1]
    value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (value, value))


def drop_capabilities() -> None:
    """Give all privileges away, without a way to get any."""
    set_process_option(PR_SET_NO_NEW_PRIVS, 1)
    set_process_option(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("Ii", CAPABILITY_VERSION, 0)
    check_call(libc.capset(header, bytes(24)), "capset")


def leave_keyring() -> None:
    """Take a new session keyring: the worker's may hold tickets and keys, and is inherited."""
    number = SYS_KEYCTL.get(os.uname().machine)
    if number is not None:
        libc.syscall(ctypes.c_long(number), ctypes.c_long(KEYCTL_JOIN_SESSION_KEYRING), None)


def landlock_version() -> int:
    """What of Landlock the kernel knows; 0 or less where it has none."""
    numbers = (SYS_LANDLOCK_CREATE, 0, 0, LANDLOCK_CREATE_RULESET_VERSION)
    return int(libc.syscall(*map(ctypes.c_long, numbers)))


def allow_ports(ports: list[int]) -> None:
    """Let this process and its children connect to these TCP ports alone, and to no abstract unix socket."""
    attributes = [0, LANDLOCK_ACCESS_NET_CONNECT_TCP]
    if landlock_version() >= SCOPES_VERSION:
        attributes.append(LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET)
    packed = struct.pack(f"{len(attributes)}Q", *attributes)
    create, size, none = map(ctypes.c_long, (SYS_LANDLOCK_CREATE, len(packed), 0))
    rules = ctypes.c_long(check_call(libc.syscall(create, packed, size, none), "landlock"))
    for port in ports:
        rule = struct.pack("2Q", LANDLOCK_ACCESS_NET_CONNECT_TCP, port)
        add, kind = map(ctypes.c_long, (SYS_LANDLOCK_ADD, LANDLOCK_RULE_NET_PORT))
        check_call(libc.syscall(add, rules, kind, rule, none), "landlock")
    check_call(libc.syscall(ctypes.c_long(SYS_LANDLOCK_RESTRICT), rules, none), "landlock")
    os.close(rules.value)


def become_command(settings: Settings, command: list[str]) -> int:
    """Become the account and the command, in a session of its own; an exit status where that fails."""
    for name, limit in settings["limits"].items():
        lower_limit(getattr(resource, name), limit)
    account = settings["account"]
    if account is not None:
        os.setgroups(settings["device_groups"])
        os.setresgid(account, account, account)
        os.setresuid(account, account, account)
    leave_keyring()
    drop_capabilities()
    if settings["ports"] is not None:
        allow_ports(settings["ports"])
    os.chdir(settings["folder"])
    # Ignored signals stay so through exec.
    for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    try:
        os.execv(command[0], command)  # noqa: S606 - a list of arguments, and no shell
    except OSError as error:
        os.write(1, f"[paceline] {command[0]} could not be started: {error.strerror}\n".encode())
        return 127


def print_failure(error: OSError) -> None:
    """One line into the log."""
    what = f" ({error.filename})" if error.filename else ""
    os.write(1, f"paceline: the box could not be made: {error.strerror or error}{what}\n".encode())


def main() -> int:
    stage, settings, command = sys.argv[1], read_settings(sys.argv[2]), sys.argv[3:]
    try:
        if stage == "enter":
            return enter_box(settings, command)
        finish_box(settings)
        # bubblewrap keeps no pipe open to see its end by; the reaper ends what it leaves.
        return run_first_process(settings, command, lambda: True)
    except OSError as error:
        print_failure(error)
        return NOT_MADE


if __name__ == "__main__":
    sys.exit(main())
