/*
 * fleet_objects.c - where the bundles of a part go, for those who look after a fleet: a backup of
 * its database has no objects (decision 0060).
 */
#include "cli/config.h"
#include "cli/fleet/fleet_args.h"
#include "cli/objects.h"
#include "fleet/api.h"
#include "stores/api.h"

static const char *setting(const cx_setting *settings, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (cx_str_is(settings[i].section, CX_CLI_OBJECTS_SECTION) &&
            cx_str_is(settings[i].name, name) && settings[i].value_count != 0)
            return settings[i].values[0];
    return NULL;
}

cx_status cx_cli_fleet_objects(cx_cli_fleet_job *job, unsigned part, const char **out_bucket,
                               cx_err *err)
{
    const cx_setting *settings = NULL;
    size_t count = 0;
    cx_err why;
    cx_buf text;
    cx_buf_init(&text, job->cli->alloc);
    cx_status status = cx_fleet_small_read(job->fleet, part, CX_STR(CX_CONFIG_NAME), &text, err);
    cx_str kept = {"", 0};
    if (!cx_failed(status) && text.size != 0)
        kept = cx_cli_fleet_kept(job, cx_buf_str(&text));
    cx_buf_done(&text);
    if (status.code == CX_E_NOT_FOUND || status.code == CX_E_DENIED) /* a user of few rights */
        status = CX_SUCCESS;
    if (cx_failed(status))
        return status;
    if (kept.data == NULL)
        return cx_fail_nomem(err);
    if (cx_settings_read(kept, &job->cli->arena, &settings, &count, &why).code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    const char *store = setting(settings, count, "store");
    const char *bucket = setting(settings, count, "bucket");
    bool there = store == NULL ? job->cli->stores_objects : strcmp(store, "s3") == 0;
    if (bucket == NULL && job->cli->objects != NULL)
        bucket = job->cli->objects->bucket;
    *out_bucket = !there ? NULL : bucket == NULL ? "of another file" : bucket;
    return CX_SUCCESS;
}
