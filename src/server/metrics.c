/*
 * metrics.c - counting, and the text that Prometheus reads (exposition format 0.0.4).
 */
#include "server/metrics.h"

static const double bucket_seconds[CX_METRICS_BUCKETS - 1] = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0};

void cx_histogram_add(cx_histogram *histogram, uint64_t duration_ns)
{
    double seconds = (double)duration_ns * 1e-9;
    size_t bucket = 0;
    while (bucket < CX_METRICS_BUCKETS - 1 && seconds > bucket_seconds[bucket])
        bucket++;
    cx_counter_add(&histogram->buckets[bucket], 1);
    cx_counter_add(&histogram->sum_us, duration_ns / 1000);
}

void cx_metrics_head(cx_buf *out, const char *name, const char *type, const char *help)
{
    cx_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void cx_metrics_value(cx_buf *out, const char *name, const char *labels, uint64_t value)
{
    cx_buf_printf(out, "%s%s%s%s ", name, labels == NULL ? "" : "{", labels == NULL ? "" : labels,
                  labels == NULL ? "" : "}");
    cx_buf_add_u64(out, value);
    cx_buf_add_byte(out, '\n');
}

void cx_histogram_write(cx_buf *out, const char *name, const char *labels,
                        const cx_histogram *histogram)
{
    uint64_t count = 0;
    for (size_t i = 0; i < CX_METRICS_BUCKETS; i++) {
        count += cx_counter(&histogram->buckets[i]);
        cx_buf_printf(out, "%s_bucket{%s,le=\"", name, labels);
        if (i < CX_METRICS_BUCKETS - 1)
            cx_buf_printf(out, "%g", bucket_seconds[i]);
        else
            cx_buf_add_z(out, "+Inf");
        cx_buf_printf(out, "\"} %llu\n", (unsigned long long)count);
    }
    cx_buf_printf(out, "%s_sum{%s} %.6f\n%s_count{%s} %llu\n", name, labels,
                  (double)cx_counter(&histogram->sum_us) * 1e-6, name, labels,
                  (unsigned long long)count);
}
