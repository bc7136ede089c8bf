/*
 * n_eff.c - how many independent quantities a set of scores measures (trace.md §12): the
 * participation ratio and the entropy of the eigenvalues of the scores' correlations.
 */
#include <math.h>

#include "analysis/detect.h"
#include "analysis/stats.h"

#define COLUMNS 17
#define ROWS_MIN 20
#define FLAT 1e-9
#define SWEEPS_MAX 64

static const char *const names[COLUMNS] = {"csdma",
                                           "dsdma",
                                           "coherence_level",
                                           "entropy_level",
                                           "k_eff",
                                           "correlation_risk",
                                           "entropy_score",
                                           "coherence_score",
                                           "optimization_veto_entropy_ratio",
                                           "epistemic_humility_certainty",
                                           "fragility_flag",
                                           "entropy_passed",
                                           "coherence_passed",
                                           "optimization_veto_passed",
                                           "epistemic_humility_passed",
                                           "conscience_passed",
                                           "action_was_overridden"};

static double flag_value(int8_t value)
{
    return value == CX_NULL ? (double)NAN : value == CX_TRUE ? 1 : 0;
}

static void read_row(const cx_score_row *row, double out[COLUMNS])
{
    const double values[COLUMNS] = {row->csdma,
                                    row->dsdma,
                                    row->coherence,
                                    row->entropy,
                                    row->k_eff,
                                    row->rho,
                                    row->entropy_score,
                                    row->coherence_score,
                                    row->veto_ratio,
                                    row->humility_certainty,
                                    flag_value(row->fragility_flag),
                                    flag_value(row->entropy_passed),
                                    flag_value(row->coherence_passed),
                                    flag_value(row->veto_passed),
                                    flag_value(row->humility_passed),
                                    flag_value(row->conscience_passed),
                                    flag_value(row->overridden)};
    memcpy(out, values, sizeof values);
}

static bool is_used(const cx_score_row *row)
{
    return isfinite(row->csdma) && isfinite(row->k_eff);
}

/* The deviation of a column whose gaps are filled with its mean. */
typedef struct column {
    unsigned which;
    double mean;
    double deviation;
} column;

static unsigned find_columns(const cx_score_row *rows, size_t count, uint64_t used,
                             column out[COLUMNS])
{
    cx_stats stats[COLUMNS] = {{0}};
    unsigned found = 0;
    for (size_t i = 0; i < count; i++) {
        double values[COLUMNS];
        if (!is_used(&rows[i]))
            continue;
        read_row(&rows[i], values);
        for (unsigned k = 0; k < COLUMNS; k++)
            cx_stats_add(&stats[k], values[k]);
    }
    for (unsigned k = 0; k < COLUMNS; k++) {
        if (stats[k].count == 0)
            continue;
        double deviation = sqrt(stats[k].squares / (double)(used - 1));
        if (isfinite(deviation) &&
            deviation >= FLAT) /* skip a column whose deviation overflows a double */
            out[found++] = (column){k, stats[k].mean, deviation};
    }
    return found;
}

/* Of the z-scored columns; symmetric. */
static void covariance(const cx_score_row *rows, size_t count, uint64_t used, const column *columns,
                       unsigned size, double out[COLUMNS][COLUMNS])
{
    memset(out, 0, sizeof(double[COLUMNS][COLUMNS]));
    for (size_t i = 0; i < count; i++) {
        double values[COLUMNS], z[COLUMNS];
        if (!is_used(&rows[i]))
            continue;
        read_row(&rows[i], values);
        for (unsigned k = 0; k < size; k++) {
            double value = values[columns[k].which];
            z[k] = isfinite(value) ? (value - columns[k].mean) / columns[k].deviation : 0;
        }
        for (unsigned a = 0; a < size; a++)
            for (unsigned b = 0; b <= a; b++)
                out[a][b] += z[a] * z[b];
    }
    for (unsigned a = 0; a < size; a++)
        for (unsigned b = 0; b <= a; b++)
            out[a][b] = out[b][a] = out[a][b] / (double)(used - 1);
}

/* One Jacobi rotation that makes m[p][q] zero. */
static void rotate(double m[COLUMNS][COLUMNS], unsigned size, unsigned p, unsigned q)
{
    double theta = (m[q][q] - m[p][p]) / (2 * m[p][q]);
    double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;
    for (unsigned k = 0; k < size; k++) {
        double a = m[k][p], b = m[k][q];
        m[k][p] = c * a - s * b;
        m[k][q] = s * a + c * b;
    }
    for (unsigned k = 0; k < size; k++) {
        double a = m[p][k], b = m[q][k];
        m[p][k] = c * a - s * b;
        m[q][k] = s * a + c * b;
    }
}

static double off_diagonal(double m[COLUMNS][COLUMNS], unsigned size)
{
    double sum = 0;
    for (unsigned a = 0; a < size; a++)
        for (unsigned b = 0; b < a; b++)
            sum += m[a][b] * m[a][b];
    return sum;
}

static void eigenvalues(double m[COLUMNS][COLUMNS], unsigned size, double *out)
{
    for (unsigned sweep = 0; sweep < SWEEPS_MAX && off_diagonal(m, size) > 1e-24; sweep++)
        for (unsigned p = 0; p + 1 < size; p++)
            for (unsigned q = p + 1; q < size; q++)
                if (fabs(m[p][q]) > 1e-300)
                    rotate(m, size, p, q);
    for (unsigned i = 0; i < size; i++) {
        double value = m[i][i] > 0 ? m[i][i] : 0; /* below zero is rounding */
        unsigned at = i;
        for (; at > 0 && out[at - 1] < value; at--)
            out[at] = out[at - 1];
        out[at] = value;
    }
}

static void summarise_eigenvalues(cx_n_eff *out)
{
    double sum = 0, squares = 0, entropy = 0;
    for (unsigned i = 0; i < out->columns_used; i++) {
        sum += out->eigenvalues[i];
        squares += out->eigenvalues[i] * out->eigenvalues[i];
    }
    for (unsigned i = 0; i < out->columns_used; i++) {
        double p = out->eigenvalues[i] / sum;
        if (p > 0)
            entropy -= p * log(p);
    }
    out->participation = sum * sum / squares;
    out->entropy = exp(entropy);
}

cx_status cx_n_eff_compute(const cx_score_row *rows, size_t count, cx_arena *arena, cx_n_eff *out,
                           cx_err *err)
{
    CX_ASSERT(out != NULL && (rows != NULL || count == 0));
    cx_n_eff result = {.rows_used = 0};
    column columns[COLUMNS];
    double matrix[COLUMNS][COLUMNS];
    (void)arena;
    (void)err;
    for (size_t i = 0; i < count; i++)
        result.rows_used += is_used(&rows[i]);
    if (result.rows_used >= ROWS_MIN)
        result.columns_used = find_columns(rows, count, result.rows_used, columns);
    result.enough = result.columns_used != 0;
    if (result.enough) {
        for (unsigned k = 0; k < result.columns_used; k++)
            result.columns[k] = names[columns[k].which];
        covariance(rows, count, result.rows_used, columns, result.columns_used, matrix);
        eigenvalues(matrix, result.columns_used, result.eigenvalues);
        summarise_eigenvalues(&result);
    }
    *out = result;
    return CX_SUCCESS;
}
