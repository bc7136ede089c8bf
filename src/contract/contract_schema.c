/*
 * contract_schema.c - the output schema bound to a contract (K04, §6), and the bytes of its
 * artifacts (K15).
 *
 * A schema is searched in the baseline; for a baseline without the file, the built-in file of that
 * name is used.
 */
#include "crypto/api.h"
#include "rules/api.h"
#include "contract/contract_parts.h"

enum { ARTIFACT_BYTES_MAX = 64 << 20 };

/*
 * Editions of the built-in schemas that another project published under the same name: they accept
 * and reject the same instances (tests/vectors/run/report_schema.json holds for both), so a
 * contract may bind either. They are identified by digest, and used only when the baseline has no
 * such file.
 */
static const struct {
    const char *file, *sha256;
} editions[] = {
    {"agent_task_result.v1.json",
     "48579fe57c2178dd2112d1517cf057ccbd04e530c254999d40588a322f8cc576"},
    {"review_report.v1.json", "26944733cd476dfa113f0746d4e240e2999800f8ef7296421f30e5974bf1dfc7"},
    {"test_report.v1.json", "2ed071e1c10261adfb4ac4f5c786db68564a46e2bec2527ab2b758e2aaa28849"},
};

static bool is_known_edition(cx_str uri, const cx_digest *digest)
{
    cx_digest known;
    for (size_t i = 0; i < CX_COUNT_OF(editions); i++)
        if (cx_str_starts(uri, CX_STR("schemas/")) &&
            cx_str_is(cx_str_from(uri.data + 8, uri.size - 8), editions[i].file) &&
            cx_digest_parse(cx_str_z(editions[i].sha256), &known) && cx_digest_eq(&known, digest))
            return true;
    return false;
}

/* Relative to the repository or the bundle, in normalised spelling. */
static bool is_relative_uri(cx_str uri)
{
    size_t start = 0;
    if (uri.size == 0 || uri.size > CX_RUN_PATH_BYTES_MAX || uri.data[uri.size - 1] == '/')
        return false;
    for (size_t i = 0; i < uri.size; i++) {
        unsigned char byte = (unsigned char)uri.data[i];
        if (byte < 0x20 || byte == 0x7F || byte == '\\' || byte == ':')
            return false;
    }
    for (size_t i = 0; i <= uri.size; i++) {
        if (i != uri.size && uri.data[i] != '/')
            continue;
        cx_str part = cx_str_from(uri.data + start, i - start);
        if (part.size == 0 || cx_str_eq(part, CX_STR(".")) || cx_str_eq(part, CX_STR("..")))
            return false;
        start = i + 1;
    }
    return true;
}

typedef struct found_bytes {
    cx_run_blob kind;
    bool built_in;
    cx_bytes bytes;
} found_bytes;

/* Searches the baseline, then the bundle and the built-in files. */
static cx_status find_artifact_bytes(const cx_contract *contract, cx_str uri,
                                     const cx_run_repo *repo, cx_arena *arena, found_bytes *out,
                                     cx_err *err)
{
    *out = (found_bytes){CX_BLOB_NONE, false, {NULL, 0}};
    if (repo != NULL && contract->baseline_commit.size != 0)
        CX_TRY(repo->read(repo->arg, contract->baseline_commit, uri, ARTIFACT_BYTES_MAX, arena,
                          &out->kind, &out->bytes, err));
    if (out->kind == CX_BLOB_NONE && repo != NULL && repo->artifact != NULL)
        CX_TRY(repo->artifact(repo->arg, uri, ARTIFACT_BYTES_MAX, arena, &out->kind, &out->bytes,
                              err));
    if (out->kind == CX_BLOB_NONE && cx_str_starts(uri, CX_STR("schemas/"))) {
        cx_str name = cx_arena_copy_str(arena, uri);
        if (name.data == NULL)
            return cx_fail_nomem(err);
        if (cx_run_asset(name.data, &out->bytes)) {
            out->kind = CX_BLOB_FILE;
            out->built_in = true;
        }
    }
    return CX_SUCCESS;
}

static bool has_digest(const found_bytes *found, cx_str uri, cx_str stated)
{
    cx_digest expected, actual;
    if (!cx_hex_decode_any(stated, expected.bytes, sizeof expected.bytes))
        return false;
    actual = cx_digest_of(found->bytes);
    return cx_digest_eq(&expected, &actual) ||
           (found->built_in && is_known_edition(uri, &expected));
}

/* --- K04 -------------------------------------------------------------------------------------- */

static const char *expected_schema(cx_run_role role)
{
    switch (role) {
    case CX_ROLE_REVIEWER: return "review_report.v1.json";
    case CX_ROLE_TEST:
    case CX_ROLE_TEST_RUNNER: return "test_report.v1.json";
    default: return "agent_task_result.v1.json";
    }
}

/* "output_schema" or "output_schema.worker", for the assigned role. */
static bool binds_output_schema(cx_str name, cx_run_role role)
{
    static const char prefix[] = "output_schema";
    const char *role_name = cx_run_role_name(role);
    size_t size = sizeof prefix - 1;
    if (!cx_str_starts(name, cx_str_from(prefix, size)))
        return false;
    if (name.size == size)
        return true;
    if (name.size != size + 1 + strlen(role_name) || name.data[size] != '.')
        return false;
    for (size_t i = 0; role_name[i] != 0; i++) {
        char lower = role_name[i];
        if (lower >= 'A' && lower <= 'Z')
            lower = (char)(lower + ('a' - 'A'));
        if (name.data[size + 1 + i] != lower)
            return false;
    }
    return true;
}

static void refuse_binding(contract_lint *lint, size_t index, const char *member,
                           const char *message)
{
    cx_run_findings_reject(lint->findings, "K04",
                           cx_contract_where(lint, "/inputs/artifacts", index, member), CX_STR(""),
                           "%s", message);
}

static cx_status check_binding(contract_lint *lint, size_t index)
{
    cx_contract *contract = lint->contract;
    const cx_contract_artifact *artifact = &contract->artifacts[index];
    const char *expected = expected_schema(contract->assigned.role);
    found_bytes found;
    if (!cx_str_starts(artifact->uri, CX_STR("schemas/"))) {
        refuse_binding(lint, index, "uri", "an output schema must be in schemas/");
        return CX_SUCCESS;
    }
    if (!cx_str_is(cx_str_from(artifact->uri.data + 8, artifact->uri.size - 8), expected)) {
        cx_run_findings_reject(lint->findings, "K04",
                               cx_contract_where(lint, "/inputs/artifacts", index, "uri"),
                               CX_STR(""), "a %s answers with schemas/%s, not with %.*s",
                               cx_run_role_name(contract->assigned.role), expected,
                               CX_CONTRACT_SHOW(artifact->uri, 100));
        return CX_SUCCESS;
    }
    CX_TRY(
        find_artifact_bytes(contract, artifact->uri, lint->repo, lint->arena, &found, lint->err));
    if (found.kind != CX_BLOB_FILE)
        refuse_binding(lint, index, "uri", "neither the baseline nor the program has this file");
    else if (!has_digest(&found, artifact->uri, artifact->sha256))
        refuse_binding(lint, index, "sha256",
                       "the schema has another sha256; bind the file that the baseline has");
    else {
        contract->output_schema = artifact;
        contract->output_schema_file = cx_str_z(expected);
        contract->output_schema_bytes = found.bytes;
    }
    return CX_SUCCESS;
}

cx_status cx_contract_lint_schema(contract_lint *lint)
{
    cx_contract *contract = lint->contract;
    size_t bound = 0, index = 0;
    for (size_t i = 0; i < contract->artifact_count; i++) {
        if (!binds_output_schema(contract->artifacts[i].name, contract->assigned.role))
            continue;
        if (bound++ == 0)
            index = i;
        else
            refuse_binding(lint, i, "name", "the output schema is bound a second time");
    }
    if (bound == 0) {
        cx_run_findings_reject(
            lint->findings, "K04", CX_STR("/inputs/artifacts"), CX_STR(""),
            "no output schema is bound; add an artifact named output_schema with the "
            "uri schemas/%s and its sha256",
            expected_schema(contract->assigned.role));
        return CX_SUCCESS;
    }
    CX_TRY(check_binding(lint, index));
    if (bound != 1)
        contract->output_schema = NULL;
    return CX_SUCCESS;
}

/* --- K15 -------------------------------------------------------------------------------------- */

cx_status cx_run_contract_artifact(const cx_contract *contract,
                                   const cx_contract_artifact *artifact, cx_str where,
                                   const cx_run_repo *repo, cx_arena *arena,
                                   cx_run_findings *findings, cx_bytes *out, cx_err *err)
{
    CX_ASSERT(artifact != NULL && findings != NULL);
    found_bytes found;
    *out = (cx_bytes){NULL, 0};
    if (!is_relative_uri(artifact->uri)) {
        cx_run_findings_reject(findings, "K15", where, CX_STR(""),
                               "the uri '%.*s' is not a path of the repository or of the bundle",
                               CX_CONTRACT_SHOW(artifact->uri, 100));
        return CX_SUCCESS;
    }
    CX_TRY(find_artifact_bytes(contract, artifact->uri, repo, arena, &found, err));
    if (found.kind != CX_BLOB_FILE)
        cx_run_findings_reject(findings, "K15", where, CX_STR(""), "%s: %.*s",
                               found.kind == CX_BLOB_NONE ? "there is no such file in the baseline"
                               : found.kind == CX_BLOB_TOO_BIG ? "this file is longer than 64 MiB"
                                                               : "this is not a regular file",
                               CX_CONTRACT_SHOW(artifact->uri, 100));
    else if (!has_digest(&found, artifact->uri, artifact->sha256))
        cx_run_findings_reject(findings, "K15", where, CX_STR(""),
                               "the bytes of %.*s do not have the sha256 that is stated",
                               CX_CONTRACT_SHOW(artifact->uri, 100));
    else
        *out = found.bytes;
    return CX_SUCCESS;
}

cx_status cx_contract_lint_artifacts(contract_lint *lint)
{
    cx_contract *contract = lint->contract;
    for (size_t i = 0; i < contract->artifact_count; i++) {
        cx_bytes bytes;
        /* K04 has reported an output schema that does not hold. */
        if (binds_output_schema(contract->artifacts[i].name, contract->assigned.role))
            continue;
        CX_TRY(cx_run_contract_artifact(contract, &contract->artifacts[i],
                                        cx_contract_where(lint, "/inputs/artifacts", i, NULL),
                                        lint->repo, lint->arena, lint->findings, &bytes,
                                        lint->err));
    }
    return CX_SUCCESS;
}
