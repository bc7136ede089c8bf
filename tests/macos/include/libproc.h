/* Written for tests/macos. */
#ifndef CX_MACOS_LIBPROC_H
#define CX_MACOS_LIBPROC_H
#include <sys/types.h>
#define PROC_PIDTBSDINFO 3
#define PROC_PIDTASKINFO 4
#define PROC_PIDPATHINFO_MAXSIZE 4096
struct proc_bsdinfo {
    uint32_t pbi_flags, pbi_status, pbi_xstatus, pbi_pid, pbi_ppid;
    uid_t pbi_uid;
    gid_t pbi_gid;
    uid_t pbi_ruid;
    gid_t pbi_rgid;
    uid_t pbi_svuid;
    gid_t pbi_svgid;
    uint32_t rfu_1;
    char pbi_comm[16];
    char pbi_name[32];
    uint32_t pbi_nfiles, pbi_pgid, pbi_pjobc, e_tdev, e_tpgid;
    int32_t pbi_nice;
    uint64_t pbi_start_tvsec;
    uint64_t pbi_start_tvusec;
};
struct proc_taskinfo {
    uint64_t pti_virtual_size;
    uint64_t pti_resident_size;
    uint64_t more[4];
    int32_t rest[12];
};
int proc_pidinfo(int process, int flavor, uint64_t arg, void *out, int size);
int proc_pidpath(int process, void *out, uint32_t size);
#endif
