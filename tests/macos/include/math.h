/* Written for tests/macos. */
#ifndef CX_MACOS_MATH_H
#define CX_MACOS_MATH_H
#define HUGE_VAL __builtin_huge_val()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define M_PI 3.14159265358979323846
#define isfinite(x) __builtin_isfinite(x)
#define isinf(x) __builtin_isinf(x)
#define isnan(x) __builtin_isnan(x)
#define signbit(x) __builtin_signbit(x)
#define CX_MACOS_MATH(name) \
    double name(double x);  \
    float name##f(float x);
CX_MACOS_MATH(acos)
CX_MACOS_MATH(asin)
CX_MACOS_MATH(atan)
CX_MACOS_MATH(ceil)
CX_MACOS_MATH(cos)
CX_MACOS_MATH(erf)
CX_MACOS_MATH(erfc)
CX_MACOS_MATH(exp)
CX_MACOS_MATH(expm1)
CX_MACOS_MATH(exp2)
CX_MACOS_MATH(fabs)
CX_MACOS_MATH(floor)
CX_MACOS_MATH(lgamma)
CX_MACOS_MATH(log)
CX_MACOS_MATH(log10)
CX_MACOS_MATH(log1p)
CX_MACOS_MATH(log2)
CX_MACOS_MATH(rint)
CX_MACOS_MATH(round)
CX_MACOS_MATH(sin)
CX_MACOS_MATH(sqrt)
CX_MACOS_MATH(tan)
CX_MACOS_MATH(tanh)
CX_MACOS_MATH(tgamma)
CX_MACOS_MATH(trunc)
double atan2(double a, double b);
double fmod(double a, double b);
double fmax(double a, double b);
double fmin(double a, double b);
double frexp(double x, int *exponent);
double hypot(double a, double b);
double ldexp(double x, int exponent);
double modf(double x, double *whole);
double nextafter(double a, double b);
double pow(double a, double b);
double copysign(double a, double b);
float powf(float a, float b);
long lround(double x);
long long llround(double x);
#endif
