#!/usr/bin/env python3
"""Programs that try to get out of a sandbox, or to take more than they are given (run.md §16, §23).

    test_sandbox.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN; cortex-box lies beside it

Every attempt is made by a real program inside; what it reached is looked at from outside.  Skipped
with the reason where this machine cannot give a full sandbox.
"""
import json
import os
import pathlib
import socket
import subprocess
import textwrap
import time

from kit import BIN, Folder, sibling, check, main, run, skip, test

BOX = sibling("cortex-box")
PYTHON = "/usr/bin/python3"
state = {}


def look(**options):
    words = [word for name, value in options.items() for word in (name.replace("_", "-"), value)]
    done = run(BOX, BIN, *words)
    check(done.returncode == 0, done.stderr.decode())
    return json.loads(done.stdout)


def box(argv, *words, full=True, env=None):
    """What cortex-box says about a run of argv; with `full` skipped where there is no full sandbox."""
    if full:
        if "box" not in state:
            state["box"] = look()["box"]
        if state["box"]["mode"] != "full":
            missing = state["box"]["missing"][0]
            skip(f"no layer {missing['layer']} on this machine: {missing['reason']}")
    done = run(BOX, BIN, *words, "--", *argv, env=env)
    check(done.returncode == 0, done.stderr.decode())
    answer = json.loads(done.stdout)
    check(answer["error"] is None, answer["error"], answer["stderr"])
    return answer


def shell(script, *words, **options):
    return box(["/bin/sh", "-c", script], *words, **options)


def python(script, *words, **options):
    if not os.path.exists(PYTHON):
        skip("no python3 in the system")
    return box([PYTHON, "-c", textwrap.dedent(script)], *words, **options)


CALL = """
    import ctypes, errno, os, platform, sys
    libc = ctypes.CDLL(None, use_errno=True)
    def call(number, *arguments):
        ctypes.set_errno(0)
        if libc.syscall(number, *arguments) != -1:
            return "worked"
        return errno.errorcode.get(ctypes.get_errno(), "?")
    if platform.machine() != "x86_64":
        sys.exit(77)
"""


def calls(script, *words):
    """Runs a script that prints what system calls answered, by their x86-64 numbers."""
    answer = python(textwrap.dedent(CALL) + textwrap.dedent(script), *words)
    if answer["exit"] == 77:
        skip("the numbers of system calls are those of x86-64")
    check(answer["exit"] == 0, answer)
    return answer["stdout"].split()


# --- files ----------------------------------------------------------------------------------------

@test
def only_the_worktree_can_be_written():
    with Folder() as folder:
        (folder / "tree").mkdir()
        (folder / "beside").write_text("mine\n")
        answer = shell(f"""
            echo in > inside
            for at in /usr/x /etc/x /x /dev/../y /usr/bin/env /run/x /run/cortex \
                      /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do
                (echo bad >> $at) 2>/dev/null && echo wrote $at
            done
            echo bad >> {folder}/beside; echo bad > {folder}/new  # of a private /tmp, if at all
            true""", "worktree", folder / "tree")
        check(answer["stdout"] == "", answer["stdout"])
        check((folder / "tree/inside").read_text() == "in\n")
        check((folder / "beside").read_text() == "mine\n")
        check(sorted(os.listdir(folder)) == ["beside", "tree"])


@test
def a_read_only_worktree_cannot_be_written():
    with Folder() as folder:
        (folder / "file").write_text("old\n")
        answer = shell("""
            echo x > new; echo x >> file; rm -f file; mv file other; chmod 777 file; ln file hard
            mkdir d; ln -s file soft; touch file; cat file""", "worktree", folder, "read-only", "1")
        check(answer["stdout"] == "old\n", answer)
        check(os.listdir(folder) == ["file"])


@test
def private_folders_of_one_program_are_gone_for_the_next():
    with Folder() as folder:
        first = shell("ls -A $HOME $TMPDIR; echo x > $HOME/left; echo x > $TMPDIR/left; echo $HOME",
                      "worktree", folder)
        second = shell("find $HOME /dev/shm -name left; ls $TMPDIR/left", "worktree", folder)
        check(first["exit"] == 0 and second["stdout"] == "", first, second)
        check(not os.path.exists(first["stdout"].split()[-1] + "/left"))


@test
def other_work_trees_the_data_directory_and_the_users_home_are_invisible():
    with Folder() as folder:
        for name in ("root/worktrees/mine", "root/worktrees/other", "root/runs/r", "home", "user"):
            (folder / name).mkdir(parents=True)
            (folder / name / "secret").write_text("s3cret")
        answer = shell(f"""
            cat secret
            find / -name secret -not -path '/proc/*' 2>/dev/null
            ls {folder}/root/worktrees {folder} ~root /root 2>/dev/null; ls -a ../..
            """, "worktree", folder / "root/worktrees/mine", "hide", folder / "root",
            "hide", folder / "home")
        seen = answer["stdout"].split()
        check(seen[0].startswith("s3cret"), answer)
        check("other" not in seen and "runs" not in seen and "user" not in seen, seen)
        check(sum("secret" in word for word in seen) == 1, seen)


@test
def links_and_parent_paths_do_not_leave_the_sandbox():
    with Folder() as folder:
        (folder / "tree").mkdir()
        (folder / "outside").write_text("s3cret")
        answer = shell(f"""
            ln -s {folder}/outside a; ln -s / b; ln -s ../outside c; ln -s /proc/1/root d
            cat a b{folder}/outside c ../outside d{folder}/outside /proc/self/root{folder}/outside \
                /proc/1/cwd/outside /proc/$PPID/root{folder}/outside
            echo bad > a; echo bad > c""", "worktree", folder / "tree")
        check("s3cret" not in answer["stdout"], answer["stdout"])
        check((folder / "outside").read_text() == "s3cret")


@test
def files_of_the_machine_with_secrets_are_invisible():
    answer = shell("cat /etc/shadow /etc/sudoers /root/.ssh/* /home/*/.ssh/* /var/lib/*/* "
                   "/etc/ssh/* /etc/ssl/private/*")
    check(answer["stdout"] == "", answer["stdout"])


# --- other processes, the kernel -------------------------------------------------------------------

@test
def processes_of_the_machine_are_invisible():
    with subprocess.Popen(["/bin/sleep", "600"], env={"NAME_OF": "s3cret"}) as victim:
        try:
            answer = shell(f"""
                kill -9 {victim.pid}; kill -9 -1 2>/dev/null & wait
                cat /proc/{victim.pid}/environ; cat /proc/*/environ | tr '\\0' '\\n' | grep s3cret
                ls -d /proc/[0-9]* | wc -l""")
            alive = victim.poll() is None
        finally:
            victim.kill()
    check(alive, "the process outside was killed")
    check("s3cret" not in answer["stdout"], answer)


@test
def killing_everything_inside_ends_only_the_sandbox():
    answer = shell("kill -9 -1; kill -9 1; kill -9 $PPID; echo after")
    check(answer["exit"] in (0, 137), answer)


@test
def system_calls_of_the_list_are_denied():
    answers = calls("""
        import struct
        zero = b"\\0" * 128
        print(call(165, b"none", b"/tmp", b"tmpfs", 0, None),   # mount
              call(166, b"/tmp", 0),                            # umount2
              call(155, b"/", b"/tmp"),                         # pivot_root
              call(161, b"/"),                                  # chroot
              call(101, 0, 0, 0, 0),                            # ptrace TRACEME
              call(310, 1, 0, 0, 0, 0, 0),                      # process_vm_readv
              call(250, 0, 0, 0, 0, 0),                         # keyctl
              call(248, b"user", b"x", b"y", 1, -2),            # add_key
              call(321, 0, zero, 128),                          # bpf
              call(323, 0),                                     # userfaultfd
              call(298, zero, 0, -1, -1, 0),                    # perf_event_open
              call(272, 0x10000000),                            # unshare NEWUSER
              call(308, -1, 0),                                 # setns
              call(246, 0, 0, 0, 0),                            # kexec_load
              call(175, zero, 128, b""),                        # init_module
              call(169, 0, 0, 0, 0),                            # reboot
              call(429, -1, b"", -1, b"", 0),                   # move_mount
              call(438, -1, 0, 0),                              # pidfd_getfd
              call(304, -1, zero, 0),                           # open_by_handle_at
              call(135, 0x0040000))                             # personality
    """)
    check(answers == ["EPERM"] * 20, answers)


@test
def io_uring_and_clone3_are_absent():
    check(calls("""
        zero = b"\\0" * 128
        print(call(425, 1, zero), call(426, 0, 0, 0, 0, 0, 0), call(427, 0, 0, 0, 0),  # io_uring
              call(435, zero, 88))                                                     # clone3
    """) == ["ENOSYS"] * 4)


@test
def namespaces_cannot_be_made_by_clone():
    check(calls("""
        print(*[call(56, flag | 17, 0, 0, 0, 0) for flag in
                (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)])
    """) == ["EPERM"] * 7)


@test
def sockets_are_unix_only_or_inet_when_granted():
    script = """
        import socket
        families = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16, "packet": 17, "vsock": 40,
                    "alg": 38, "high": 0x100000002}
        print(*[f"{name}:{call(41, ctypes.c_ulong(number), 2, 0)}"
                for name, number in families.items()])
    """
    offline = dict(word.split(":") for word in calls(script))
    check(offline.pop("unix") == "worked", offline)
    check(set(offline.values()) == {"EAFNOSUPPORT"}, offline)
    online = dict(word.split(":") for word in calls(script, "network", "1"))
    check(online["unix"] == online["inet"] == "worked", online)
    check(all(online[name] == "EAFNOSUPPORT" for name in ("netlink", "packet", "vsock", "alg")),
          online)


@test
def no_connection_reaches_the_machine():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        port = server.getsockname()[1]
        answer = python(f"""
            import socket
            try:
                socket.create_connection(("127.0.0.1", {port}), 5)
                print("connected")
            except OSError as error:
                print("refused")
        """)
        check(answer["stdout"] == "refused\n", answer)
        online = python(f"""
            import socket
            socket.create_connection(("127.0.0.1", {port}), 60).close()
            print("connected")
        """, "network", "1")
        check(online["stdout"] == "connected\n", online)


@test
def abstract_sockets_of_the_machine_are_unreachable():
    name = f"\0cortex-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        answer = python(f"""
            import socket
            try:
                socket.socket(socket.AF_UNIX).connect({name!r})
                print("connected")
            except OSError:
                print("refused")
        """)
    check(answer["stdout"] == "refused\n", answer)


@test
def set_uid_bits_do_nothing():
    with Folder() as folder:
        answer = shell("""
            cp /usr/bin/id mine; chmod 6755 mine
            grep -E '^(NoNewPrivs|CapEff|CapBnd|Seccomp):' /proc/self/status
            ls -l mine | cut -c1-10; ./mine -u; id -u""", "worktree", folder)
        words = dict(line.split(":\t") for line in answer["stdout"].splitlines() if ":\t" in line)
        check(words["NoNewPrivs"] == "1" and words["Seccomp"] == "2", words)
        check(int(words["CapEff"], 16) == 0 and int(words["CapBnd"], 16) == 0, words)
        check(answer["stdout"].split()[-1] == answer["stdout"].split()[-2], answer)


@test
def no_descriptor_leaks_in():
    with Folder() as folder:
        (folder / "secret").write_text("s3cret")
        with open(folder / "secret", encoding="utf-8") as leak:
            os.set_inheritable(leak.fileno(), True)
            done = subprocess.run([BOX, BIN, "--", "/bin/ls", "-l", "/proc/self/fd"],
                                  capture_output=True, close_fds=False, check=False)
        look_first = shell("true")
        check(look_first["exit"] == 0)
        lines = json.loads(done.stdout)["stdout"].splitlines()
        numbers = [int(line.split(" -> ")[0].split()[-1]) for line in lines if " -> " in line]
        check(numbers == [0, 1, 2, 3], lines)  # 3: the folder that ls reads


@test
def the_environment_is_an_allowlist():
    env = {"PATH": os.environ["PATH"], "AWS_SECRET": "s3cret", "KEPT": "kept", "LD_PRELOAD": "",
           "TERM": "xterm"}
    answer = shell("env; tr '\\0' '\\n' < /proc/1/environ", "env", "KEPT", env=env)
    names = {line.split("=")[0] for line in answer["stdout"].splitlines()}
    check("KEPT=kept" in answer["stdout"], answer)
    check("s3cret" not in answer["stdout"], answer)
    check(names <= {"PATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "PYTHONDONTWRITEBYTECODE", "KEPT",
                    "PWD"}, names)


@test
def the_supervisor_cannot_be_killed_or_stopped_from_inside():
    answer = shell("kill -STOP 1; kill -KILL 1; kill -TERM 1; sleep 0.1; cat /proc/1/environ; echo after")
    check(answer["stdout"] == "after\n" and answer["exit"] == 0, answer)


@test
def orphans_are_reaped_while_the_program_runs():
    answer = python("""
        import glob, os, time
        for _ in range(300):
            if os.fork() == 0:
                if os.fork() != 0:
                    os._exit(0)
                os._exit(0)
            os.wait()
        end = time.monotonic() + 60
        while time.monotonic() < end and len(glob.glob("/proc/[0-9]*")) > 2:
            time.sleep(0.01)
        print(len(glob.glob("/proc/[0-9]*")))
    """)
    check(answer["stdout"] == "2\n", answer)


# --- more than is given ----------------------------------------------------------------------------

def gone(marker, seconds=60):
    """Whether no process of the machine has `marker` in its command line, soon."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = False
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                found = found or marker.encode() in (folder / "cmdline").read_bytes()
            except OSError:
                pass
        if not found:
            return True
        time.sleep(0.05)
    return False


@test
def children_of_a_timed_out_program_are_dead():
    marker = f"6{os.getpid()}.25"
    answer = shell(f"""
        sleep {marker} & setsid sleep {marker} & (setsid setsid sleep {marker} &)
        trap '' TERM; echo started; while :; do sleep {marker}; done""", "timeout", "300")
    check(answer["timed_out"] and answer["exit"] == 124, answer)
    check(gone(marker), "something outlived the timeout")


@test
def children_that_outlive_their_program_are_dead():
    marker = f"7{os.getpid()}.25"
    answer = shell(f"sleep {marker} & setsid -f sleep {marker}; nohup sleep {marker} >/dev/null "
                   "2>&1 & echo over")
    check(answer["exit"] == 0 and "over" in answer["stdout"], answer)
    check(gone(marker), "something outlived its program")


@test
def a_fork_bomb_is_bounded():
    marker = f"8{os.getpid()}.25"
    before = state.get("box") or look()["box"]
    if os.geteuid() == 0 and "cgroup" not in before["layers"]:
        skip("the kernel counts no processes of root, and no control group is delegated")
    answer = shell(f"""
        i=0; while [ $i -lt 300 ]; do sleep {marker} & i=$((i+1)); done; echo all of them""",
        "processes", "40", "timeout", "60000")
    check("all of them" not in answer["stdout"], answer["stdout"])
    check(gone(marker), "something outlived the bomb")


@test
def memory_is_bounded():
    answer = python("x = bytearray(3 << 30); print('got it')", "memory", 256 << 20)
    check(answer["exit"] != 0 and "got it" not in answer["stdout"], answer)


@test
def files_are_bounded():
    with Folder() as folder:
        answer = shell("head -c 3000000 /dev/zero > big; echo $?; wc -c < big", "worktree", folder,
                       "file", 1 << 20)
        check(answer["stdout"].split()[-1] == str(1 << 20), answer)


@test
def endless_output_is_truncated_and_marked():
    answer = shell("yes | head -c 20000000; echo done >&2", "output", 1000)
    check(answer["truncated"] and len(answer["stdout"]) == 1000, answer["stdout"][:100])
    check(answer["stderr"] == "done\n" and answer["exit"] == 0, answer["stderr"])


# --- what is said of it ----------------------------------------------------------------------------

@test
def an_opened_program_is_what_is_run():
    with Folder() as folder:
        answer = box(["/usr/bin/echo", "opened"], "open", "/usr/bin/echo", "worktree", folder)
        check(answer["stdout"] == "opened\n", answer)
        script = folder / "script.sh"
        script.write_text("#!/bin/sh\necho script $1\n")
        script.chmod(0o755)
        answer = box([str(script), "x"], "open", script, "worktree", folder)
        check(answer["stdout"] == "script x\n", answer)


@test
def standard_input_is_what_was_given():
    check(shell("cat; wc -c", "input", "hello\n")["stdout"].split() == ["hello", "0"])
    check(shell("wc -c")["stdout"] == "0\n")


@test
def without_bubblewrap_the_sandbox_is_degraded_with_a_reason():
    answer = look(bwrap="/nowhere/bwrap")["box"]
    check(answer["mode"] == "degraded", answer)
    missing = {one["layer"]: one["reason"] for one in answer["missing"]}
    check({"user", "pid", "ipc", "uts", "net", "files"} <= set(missing), missing)
    check(missing["files"] == "there is no /nowhere/bwrap", missing)


@test
def a_degraded_sandbox_still_enforces_its_other_limits():
    marker = f"9{os.getpid()}.25"
    with Folder() as folder:
        (folder / "tree").mkdir()
        (folder / "outside").write_text("s3cret")
        answer = shell(f"""
            echo in > inside; setsid -f sleep {marker}
            cat {folder}/outside; echo bad > {folder}/outside; grep NoNewPrivs /proc/self/status""",
            "worktree", folder / "tree", "bwrap", "/nowhere/bwrap", "degraded", "1", full=False)
        check("NoNewPrivs:\t1" in answer["stdout"], answer)
        check((folder / "tree/inside").read_text() == "in\n")
        if "landlock" in answer["layers"]:
            check("s3cret" not in answer["stdout"], answer)
            check((folder / "outside").read_text() == "s3cret")
    check(gone(marker), "something outlived its program")


@test
def killing_the_launcher_at_any_moment_leaves_no_process():
    """At moments all over a start, however long one takes here."""
    with Folder() as folder:
        command = ["/bin/sh", "-c", f"sleep 6000 # {folder}"]
        began = time.monotonic()
        shell("true", "worktree", folder)
        took = time.monotonic() - began
        for i in range(40):
            starter = subprocess.Popen([BOX, BIN, "worktree", str(folder), "--", *command],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(took * i / 40)
            starter.kill()
            starter.wait()
        check(gone(str(folder)), "something outlived who started it")


@test
def a_start_that_fails_is_an_error_and_no_result():
    done = run(BOX, BIN, "worktree", "/nowhere/at-all", "--", "/bin/true")
    answer = json.loads(done.stdout)
    if answer["box"]["mode"] != "full":
        skip("no full sandbox on this machine")
    check("could not be set up" in answer["error"], answer)


@test
def the_launcher_is_not_a_public_command():
    done = run(BIN, "sandbox-stage", "--program", "/bin/true", "--", "true")
    check(done.returncode == 125 and b"not called by a sandbox" in done.stderr, done)


main()
