/*
 * test_agent_git.c - what an agent may write of git is read without git: the index, loose objects,
 * the list of work trees; and a work tree of an agent is never a checkout that follows.
 *
 * Real git makes what is read here; then it is damaged.
 */
#include "os/gzip.h"
#include "crypto/sha1.h"
#include "git/agent_git.h"
#include "git/checkout_update.h"
#include "git/git_index.h"
#include "git/git_pack.h"
#include "git/git_parts.h"
#include "git/snapshot.h"
#include "tests/support/repo_kit.h"
#include "tests/test.h"

#define WITH(kit, err, name)                                                                      \
    repo_kit kit;                                                                                 \
    cx_err err;                                                                                   \
    if (cx_failed(repo_begin(&(kit), name, &(err))) ||                                            \
        cx_failed(repo_write(&(kit), "a/file.txt", CX_STR("text\n"), &(err))) ||                  \
        cx_failed(repo_write(&(kit), "a/file2.txt", CX_STR("text 2\n"), &(err))) ||               \
        cx_failed(repo_write(&(kit), "b", CX_STR("b\n"), &(err))) ||                              \
        cx_failed(repo_commit(&(kit), "base", &(err))) || cx_failed(repo_open(&(kit), &(err)))) { \
        cx_test_fail(__FILE__, __LINE__, "%s", (err).message);                                    \
        repo_end(&(kit));                                                                         \
        return;                                                                                   \
    }

/* --- the index -------------------------------------------------------------------------------- */

static cx_status read_file(repo_kit *kit, const char *path, cx_buf *out, cx_err *err)
{
    cx_buf_clear(out);
    return cx_folder_read_file(kit->folder, path, CX_INDEX_BYTES_MAX, out, err);
}

/* What git itself lists, against what we read. */
static void check_against_git(repo_kit *kit, const char *what)
{
    cx_err err;
    cx_buf file;
    cx_index_entry *ours = NULL, *theirs = NULL;
    size_t count = 0, expected = 0;
    cx_buf_init(&file, cx_alloc_default());
    CHECK_STATUS(repo_git(kit, &err, "ls-files", "-z", "-s", "-v", "--full-name"), &err);
    CHECK_STATUS(cx_index_parse(cx_buf_str(&kit->said), 20, &kit->arena, &theirs, &expected, &err),
                 &err);
    CHECK_STATUS(read_file(kit, ".git/index", &file, &err), &err);
    CHECK_STATUS(cx_index_read(cx_buf_bytes(&file), 20, &kit->arena, &ours, &count, &err), &err);
    if (count != expected)
        cx_test_fail(__FILE__, __LINE__, "%s: %zu entries, git has %zu", what, count, expected);
    for (size_t i = 0; i < count && i < expected; i++) {
        CHECK(cx_str_eq(ours[i].path, theirs[i].path));
        CHECK_INT(ours[i].mode, theirs[i].mode);
        CHECK_INT(ours[i].stage, theirs[i].stage);
        CHECK(cx_oid_eq(&ours[i].oid, &theirs[i].oid));
        unsigned seen = CX_INDEX_ASSUME_UNCHANGED | CX_INDEX_SKIP_WORKTREE;
        CHECK_INT(ours[i].flags & seen, theirs[i].flags & seen);
    }
    cx_buf_done(&file);
}

CX_TEST(index_is_read_as_git_reads_it)
{
    static const char *const versions[] = {"2", "3", "4"};
    WITH(kit, err, "index-git")
    cx_str deep = CX_STR("d/e/f/a name with spaces and \xc3\xa9");
    CHECK_STATUS(repo_write(&kit, deep.data, CX_STR("deep\n"), &err), &err);
    CHECK_STATUS(repo_git(&kit, &err, "add", "-A"), &err);
    CHECK_STATUS(repo_git(&kit, &err, "update-index", "--assume-unchanged", "b"), &err);
    CHECK_STATUS(repo_git(&kit, &err, "update-index", "--skip-worktree", "a/file.txt"), &err);
    for (size_t i = 0; i < CX_COUNT_OF(versions); i++) {
        CHECK_STATUS(repo_git(&kit, &err, "update-index", "--index-version", versions[i]), &err);
        check_against_git(&kit, versions[i]);
    }
    /* Unmerged entries. */
    CHECK_STATUS(repo_git(&kit, &err, "update-index", "--no-skip-worktree", "a/file.txt"), &err);
    CHECK_STATUS(repo_git(&kit, &err, "checkout", "-q", "-b", "other"), &err);
    CHECK_STATUS(repo_write(&kit, "a/file2.txt", CX_STR("theirs\n"), &err), &err);
    CHECK_STATUS(repo_git(&kit, &err, "commit", "-qam", "theirs"), &err);
    CHECK_STATUS(repo_git(&kit, &err, "checkout", "-q", "main"), &err);
    CHECK_STATUS(repo_write(&kit, "a/file2.txt", CX_STR("ours\n"), &err), &err);
    CHECK_STATUS(repo_git(&kit, &err, "commit", "-qam", "ours"), &err);
    (void)cx_failed(repo_git(&kit, &err, "merge", "-q", "other"));
    check_against_git(&kit, "unmerged");
    repo_end(&kit);
}

/* git_index.h I2 */
CX_TEST(index_that_other_files_complete_is_refused)
{
    WITH(kit, err, "index-split")
    cx_buf file;
    cx_index_entry *entries;
    size_t count;
    cx_buf_init(&file, cx_alloc_default());
    CHECK_STATUS(repo_git(&kit, &err, "update-index", "--split-index"), &err);
    CHECK_STATUS(read_file(&kit, ".git/index", &file, &err), &err);
    CHECK_INT(cx_index_read(cx_buf_bytes(&file), 20, &kit.arena, &entries, &count, &err).code,
              CX_E_UNSUPPORTED);
    /* The user's own is asked of git. */
    cx_snapshot *snapshot = NULL;
    CHECK_STATUS(cx_snapshot_read(kit.git, NULL, &snapshot, &err), &err);
    if (snapshot != NULL)
        CHECK_INT(snapshot->index_count, 3);
    cx_snapshot_close(snapshot);
    cx_buf_done(&file);
    repo_end(&kit);
}

/* git_index.h I1 */
CX_TEST(index_damaged_anywhere_is_read_or_refused)
{
    WITH(kit, err, "index-damage")
    cx_buf file;
    cx_index_entry *entries;
    size_t count;
    cx_buf_init(&file, cx_alloc_default());
    CHECK_STATUS(repo_git(&kit, &err, "update-index", "--index-version", "4"), &err);
    CHECK_STATUS(read_file(&kit, ".git/index", &file, &err), &err);
    for (size_t size = 0; size < file.size; size++) {
        /* A copy of that size: the sanitizers see what is read past it. */
        uint8_t *part = cx_alloc_default()->resize(NULL, NULL, 0, size + 1);
        REQUIRE(part != NULL);
        memcpy(part, file.data, size);
        (void)cx_failed(
            cx_index_read((cx_bytes){part, size}, 20, &kit.arena, &entries, &count, &err));
        cx_alloc_free(cx_alloc_default(), part, size + 1);
    }
    for (size_t at = 0; at < file.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            file.data[at] ^= (uint8_t)(1u << bit);
            cx_status status =
                cx_index_read(cx_buf_bytes(&file), 20, &kit.arena, &entries, &count, &err);
            for (size_t i = 0; !cx_failed(status) && i < count; i++)
                CHECK(entries[i].path.size != 0 && entries[i].stage <= 3);
            file.data[at] ^= (uint8_t)(1u << bit);
        }
    CHECK_INT(cx_index_read((cx_bytes){NULL, 0}, 20, &kit.arena, &entries, &count, &err).code,
              CX_E_FORMAT);
    cx_buf_done(&file);
    repo_end(&kit);
}

/* FSMN, version 2, whose bitmap has one bit for the second of three entries: git would believe the
 * others unseen. */
CX_TEST(index_entries_that_a_monitor_vouches_for_are_marked)
{
    WITH(kit, err, "index-monitor")
    static const uint8_t bitmap[] = {
        0, 0, 0, 3,             /* bits */
        0, 0, 0, 2,             /* words */
        0, 0, 0, 2, 0, 0, 0, 0, /* no run, one literal */
        0, 0, 0, 0, 0, 0, 0, 2, /* the second */
        0, 0, 0, 0,             /* where the last marker is */
    };
    cx_buf file, made;
    cx_index_entry *entries = NULL;
    size_t count = 0;
    cx_buf_init(&file, cx_alloc_default());
    cx_buf_init(&made, cx_alloc_default());
    CHECK_STATUS(read_file(&kit, ".git/index", &file, &err), &err);
    size_t body = file.size - 20;
    cx_buf_add(&made, file.data, body);
    size_t size = 4 + 2 + 4 + sizeof bitmap;
    const uint8_t head[] = {'F', 'S', 'M', 'N', 0, 0, 0, (uint8_t)size, 0, 0,
                            0,   2,   't', 0,   0, 0, 0, sizeof bitmap};
    cx_buf_add(&made, head, sizeof head);
    cx_buf_add(&made, bitmap, sizeof bitmap);
    cx_buf_add(&made, file.data + body, 20);
    CHECK_STATUS(cx_index_read(cx_buf_bytes(&made), 20, &kit.arena, &entries, &count, &err), &err);
    CHECK_INT(count, 3);
    if (count == 3) {
        CHECK_INT(entries[0].flags, CX_INDEX_FSMONITOR_VALID);
        CHECK_INT(entries[1].flags, 0);
        CHECK_INT(entries[2].flags, CX_INDEX_FSMONITOR_VALID);
    }
    cx_buf_done(&file);
    cx_buf_done(&made);
    repo_end(&kit);
}

/* --- objects ---------------------------------------------------------------------------------- */

/* agent_git.h I2 */
CX_TEST(objects_of_a_folder_come_into_the_repository)
{
    WITH(kit, err, "objects-take")
    char folder[FOLDER_PATH_SIZE + 16], variable[FOLDER_PATH_SIZE + 64], name[CX_OID_TEXT_SIZE];
    cx_agent_objects taken;
    cx_oid oid = cx_git_blob_oid(kit.git, cx_str_bytes(CX_STR("made by an agent\n")));
    cx_buf back;
    cx_buf_init(&back, cx_alloc_default());
    cx_agent_objects_init(&taken);
    (void)snprintf(folder, sizeof folder, "%s.objects", kit.path);
    (void)snprintf(variable, sizeof variable, "GIT_OBJECT_DIRECTORY=%s", folder);
    CHECK_STATUS(cx_path_make_folders(folder, &err), &err);
    const char *const env[] = {variable, NULL};
    cx_git_call write = {.args = CX_GIT_ARGS("hash-object", "-w", "--stdin"),
                         .input = cx_str_bytes(CX_STR("made by an agent\n")),
                         .env = env,
                         .bare = true};
    CHECK_STATUS(cx_git_call_run(kit.git, &write, NULL, NULL, &err), &err);
    CHECK(cx_failed(cx_git_blob(kit.git, &oid, 100, &back, &err)));
    CHECK_STATUS(cx_agent_git_import_objects(kit.git, folder, &taken, &err), &err);
    cx_buf_clear(&back);
    CHECK_STATUS(cx_git_blob(kit.git, &oid, 100, &back, &err), &err);
    CHECK_STR(cx_buf_str(&back), "made by an agent\n");

    /* A FIFO with the name of an object is no object, and reading it does not block. */
    cx_file within;
    CHECK_STATUS(cx_folder_open(folder, &within, &err), &err);
    cx_oid_text(&oid, name);
    char path[CX_OID_TEXT_SIZE + 2];
    (void)snprintf(path, sizeof path, "%.2s/%.37s0", name, name + 2);
    CHECK_STATUS(cx_folder_make_fifo(within, path, &err), &err);
    CHECK_STATUS(cx_agent_git_import_objects(kit.git, folder, &taken, &err), &err);
    CHECK_STATUS(cx_folder_remove(within, path, &err), &err);

    /* Contents under another name. */
    cx_file file;
    char mine[CX_OID_TEXT_SIZE + 2];
    (void)snprintf(mine, sizeof mine, "%.2s/%s", name, name + 2);
    cx_buf_clear(&back);
    CHECK_STATUS(cx_folder_read_file(within, mine, 1000, &back, &err), &err);
    CHECK_STATUS(cx_folder_open_in(within, path, CX_IO_WRITE | CX_IO_CREATE, &file, &err), &err);
    CHECK_STATUS(cx_io_write_all(cx_io_system(), file, path, back.data, back.size, &err), &err);
    cx_folder_close(file);
    CHECK_INT(cx_agent_git_import_objects(kit.git, folder, &taken, &err).code, CX_E_FORMAT);
    cx_folder_close(within);
    CHECK_STATUS(cx_path_remove_tree(folder, &err), &err);
    cx_agent_objects_done(&taken);
    cx_buf_done(&back);
    repo_end(&kit);
}

/* A pack with one tree of 3 GiB of zeros, which takes 20 MB. */
static void add_vast_pack(cx_buf *out)
{
    const uint64_t size = UINT64_C(3) << 30;
    static const uint8_t head[] = {'P', 'A', 'C', 'K', 0, 0, 0, 2, 0, 0, 0, 1};
    static const uint8_t zlib_head[] = {0x78, 0xda};
    /* One block with fixed codes: a zero, then "258 bytes, from one byte before" in 13 bits
     * each. */
    cx_buf_add(out, head, sizeof head);
    uint64_t rest = size >> 4;
    cx_buf_add_byte(out, (uint8_t)(2 << 4 | (size & 15) | 128));
    for (; rest > 127; rest >>= 7)
        cx_buf_add_byte(out, (uint8_t)(rest & 127) | 128);
    cx_buf_add_byte(out, (uint8_t)rest);
    cx_buf_add(out, zlib_head, sizeof zlib_head);
    uint64_t bits = 0;
    unsigned count = 0;
#define PUT(value, width)                          \
    do {                                           \
        bits |= (uint64_t)(value) << count;        \
        count += (width);                          \
        for (; count >= 8; count -= 8, bits >>= 8) \
            cx_buf_add_byte(out, (uint8_t)bits);   \
    } while (0)
    PUT(1 | 1 << 1, 3); /* the last block, with fixed codes */
    PUT(0x0c, 8);       /* the literal 0: 00110000, from its high bit on */
    uint64_t left = size - 1;
    for (; left >= 258; left -= 258) {
        PUT(0xa3, 8); /* a length of 258: code 285, 11000101 from its high bit on */
        PUT(0, 5);    /* from one byte before */
    }
    for (; left != 0; left--)
        PUT(0x0c, 8);
    PUT(0, 7); /* the end of the block */
    PUT(0, 7);
#undef PUT
    uint32_t sum = (uint32_t)(size % 65521) << 16 | 1; /* Adler-32 of zeros */
    for (unsigned i = 4; i-- > 0;)
        cx_buf_add_byte(out, (uint8_t)(sum >> (8 * i)));
    uint8_t name[CX_SHA1_SIZE];
    cx_sha1 hash;
    cx_sha1_init(&hash);
    cx_sha1_add(&hash, out->data, out->size);
    cx_sha1_end(&hash, name);
    cx_buf_add(out, name, sizeof name);
}

CX_TEST(pack_that_would_fill_the_memory_is_refused)
{
    WITH(kit, err, "vast-pack")
    cx_buf pack;
    cx_buf_init(&pack, cx_alloc_default());
    add_vast_pack(&pack);
    CHECK_STATUS(cx_buf_check(&pack, &err), &err);
    CHECK(pack.size < UINT64_C(32) << 20);
    CHECK_INT(cx_git_pack_store_bytes(kit.git, cx_buf_bytes(&pack), 0, &err).code, CX_E_LIMIT);
    CHECK(strstr(err.message, "needs more than 1024 MiB of memory") != NULL);
    cx_buf_done(&pack);
    repo_end(&kit);
}

CX_TEST(loose_objects_have_one_form)
{
    static const char *const bad[] = {
        "blob 5\nabcde", "blob 4", "blo 0", "blob 00", "blob -1", "tree ", "blob 99999999999999"};
    cx_err err;
    cx_buf packed, out;
    cx_object_type type;
    cx_buf_init(&packed, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_zlib_pack(cx_bytes_from("blob 5\0abcde", 12), &packed, &err), &err);
    CHECK_STATUS(cx_git_loose_parse(cx_buf_bytes(&packed), 100, &type, &out, &err), &err);
    CHECK_INT(type, CX_OBJECT_BLOB);
    CHECK_STR(cx_buf_str(&out), "abcde");
    CHECK_INT(
        cx_git_loose_parse((cx_bytes){packed.data, packed.size - 1}, 100, &type, &out, &err).code,
        CX_E_SYNTAX);
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        cx_buf_clear(&packed);
        cx_str text = {bad[i], strlen(bad[i]) + 1}; /* with its zero byte */
        CHECK_STATUS(cx_zlib_pack(cx_str_bytes(text), &packed, &err), &err);
        CHECK_INT(cx_git_loose_parse(cx_buf_bytes(&packed), 100, &type, &out, &err).code,
                  CX_E_FORMAT);
    }
    cx_buf_done(&packed);
    cx_buf_done(&out);
}

/* --- work trees ------------------------------------------------------------------------------- */

static void add_tree(repo_kit *kit, const char *root, const char *task, cx_worktree *out)
{
    cx_err err;
    cx_oid base;
    CHECK_STATUS(cx_git_resolve(kit->git, CX_STR("HEAD"), &base, &err), &err);
    const cx_worktree_options where = {.runtime_root = root,
                                       .run_id = CX_STR("run_one"),
                                       .task_id = cx_str_z(task),
                                       .commit = base};
    CHECK_STATUS(cx_run_worktree_add(kit->git, &where, &kit->arena, out, &err), &err);
}

static void replace_file(const char *folder, const char *name, cx_str text)
{
    cx_err err;
    cx_file within, file;
    CHECK_STATUS(cx_folder_open(folder, &within, &err), &err);
    CHECK_STATUS(cx_folder_remove_tree(within, name, &err), &err);
    if (text.data == NULL) {
        CHECK_STATUS(cx_folder_make_fifo(within, name, &err), &err);
    } else {
        CHECK_STATUS(cx_folder_open_in(within, name, CX_IO_WRITE | CX_IO_CREATE, &file, &err),
                     &err);
        CHECK_STATUS(cx_io_write_all(cx_io_system(), file, name, text.data, text.size, &err), &err);
        cx_folder_close(file);
    }
    cx_folder_close(within);
}

/* Git's own list of work trees would wait for the FIFO, and git in the planted checkout would do
 * what its configuration says. */
/* worktree.h I3 */
CX_TEST(work_trees_of_runs_are_listed_without_belief)
{
    WITH(kit, err, "trees-listed")
    char root[FOLDER_PATH_SIZE + 32];
    cx_worktree one, two;
    cx_worktree_listed *items = NULL;
    cx_git *checkout = NULL;
    size_t count = 0;
    (void)snprintf(root, sizeof root, "%s/.runtime-cache/cortexpilot", kit.path);
    add_tree(&kit, root, "task_one", &one);
    add_tree(&kit, root, "task_two", &two);
    CHECK(cx_git_is_hostile(one.git));
    replace_file(cx_git_dir(one.git), "gitdir", (cx_str){NULL, 0});
    replace_file(cx_git_dir(two.git), "HEAD", CX_STR("ref: refs/heads/main\n"));
    replace_file(cx_git_dir(two.git), "gitdir", CX_STR("/planted/repository/.git\n"));
    CHECK_STATUS(cx_run_worktree_list(kit.git, root, &kit.arena, &items, &count, &err), &err);
    CHECK_INT(count, 3);
    for (size_t i = 1; i < count; i++)
        CHECK(items[i].of_a_run && (items[i].broken || items[i].prunable));
    /* Main is the user's checkout, whatever a work tree of a run says. */
    CHECK_STATUS(cx_checkout_update_target(kit.git, root, CX_STR("refs/heads/main"), &kit.arena,
                                           &checkout, &err),
                 &err);
    REQUIRE(checkout != NULL);
    CHECK_STR(cx_str_z(cx_git_worktree(checkout)), kit.path);
    cx_git_close(checkout);
    CHECK_STATUS(repo_git(&kit, &err, "checkout", "-q", "--detach"), &err);
    CHECK_STATUS(cx_checkout_update_target(kit.git, root, CX_STR("refs/heads/main"), &kit.arena,
                                           &checkout, &err),
                 &err);
    CHECK(checkout == NULL);
    cx_git_close(one.git);
    cx_git_close(two.git);
    repo_end(&kit);
}

/* agent_git.h I1 */
CX_TEST(agent_has_a_copy_of_its_git_directory)
{
    WITH(kit, err, "agent-copy")
    char root[FOLDER_PATH_SIZE + 32], hidden[FOLDER_PATH_SIZE + 32];
    cx_worktree tree;
    cx_agent_git agent;
    cx_snapshot *before = NULL, *after = NULL;
    (void)snprintf(root, sizeof root, "%s/.runtime-cache/cortexpilot", kit.path);
    (void)snprintf(hidden, sizeof hidden, "%s/.runtime-cache/hidden", kit.path);
    add_tree(&kit, root, "task_one", &tree);
    CHECK_STATUS(cx_path_make_folders(hidden, &err), &err);
    CHECK_STATUS(cx_agent_git_make(&tree, hidden, hidden, false, &kit.arena, &agent, &err), &err);
    CHECK_STR(agent.ref_prefix, "refs/heads/cortex/run_one/");
    const cx_snapshot_options how = {.agent = &agent};
    CHECK_STATUS(cx_snapshot_read(tree.git, NULL, &before, &err), &err);
    CHECK_STATUS(cx_snapshot_read(tree.git, &how, &after, &err), &err);
    REQUIRE(before != NULL && after != NULL);
    CHECK_INT(after->ref_count, before->ref_count);
    CHECK_INT(after->index_count, before->index_count);
    CHECK_INT(after->meta_count, before->meta_count);
    for (size_t i = 0; i < after->meta_count && i < before->meta_count; i++) {
        CHECK(cx_str_eq(after->metas[i].name, before->metas[i].name));
        CHECK_INT(after->metas[i].kind_mode, before->metas[i].kind_mode);
        CHECK(cx_digest_eq(&after->metas[i].sha256, &before->metas[i].sha256));
    }
    CHECK(cx_oid_eq(&after->head, &before->head));
    CHECK(cx_str_eq(after->head_ref, before->head_ref));
    cx_snapshot_close(after);
    after = NULL;

    /* What it leaves there is seen, and the repository has nothing of it. */
    replace_file(agent.ref_dir, "more", CX_STR("ref: refs/heads/main\n"));
    replace_file(agent.ref_dir, "fifo", (cx_str){NULL, 0});
    CHECK_STATUS(cx_snapshot_read(tree.git, &how, &after, &err), &err);
    REQUIRE(after != NULL);
    CHECK_INT(after->ref_count, before->ref_count + 2);
    for (size_t i = 0; i < after->ref_count; i++) {
        if (cx_str_ends(after->refs[i].name, CX_STR("/more")))
            CHECK_STR(after->refs[i].target, "refs/heads/main");
        if (cx_str_ends(after->refs[i].name, CX_STR("/fifo")))
            CHECK_STR(after->refs[i].target, "broken");
    }
    cx_snapshot_close(after);
    after = NULL;
    replace_file(agent.git_dir, "HEAD", (cx_str){NULL, 0});
    CHECK_INT(cx_snapshot_read(tree.git, &how, &after, &err).code, CX_E_DENIED);
    cx_snapshot_close(before);
    cx_git_close(tree.git);
    repo_end(&kit);
}
