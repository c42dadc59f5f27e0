#include "hone/backend/loading/c_functions.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <iterator>

namespace hone::backend {
namespace {

struct CFunction {
  CFunction(std::string_view of, void* at) : name(of), address(at) {}
  std::string_view name;
  void* address;
};

// The overload of this type.
template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

using Double1 = double(double);
using Double2 = double(double, double);
using Double3 = double(double, double, double);
using DoubleBoth = void(double, double*, double*);
using Float1 = float(float);
using Float2 = float(float, float);
using Float3 = float(float, float, float);
using FloatBoth = void(float, float*, float*);

#define HONE_C_FUNCTION(name, ...) CFunction(#name, address_of<__VA_ARGS__>(::name))
const CFunction kFunctions[] = {
    HONE_C_FUNCTION(atan, Double1),
    HONE_C_FUNCTION(atanf, Float1),
    HONE_C_FUNCTION(ceil, Double1),
    HONE_C_FUNCTION(ceilf, Float1),
    HONE_C_FUNCTION(cos, Double1),
    HONE_C_FUNCTION(cosf, Float1),
    HONE_C_FUNCTION(erf, Double1),
    HONE_C_FUNCTION(erfc, Double1),
    HONE_C_FUNCTION(erff, Float1),
    HONE_C_FUNCTION(exp, Double1),
    HONE_C_FUNCTION(expf, Float1),
    HONE_C_FUNCTION(exp2, Double1),
    HONE_C_FUNCTION(exp2f, Float1),
    HONE_C_FUNCTION(floor, Double1),
    HONE_C_FUNCTION(floorf, Float1),
    HONE_C_FUNCTION(fma, Double3),
    HONE_C_FUNCTION(fmaf, Float3),
    HONE_C_FUNCTION(fmod, Double2),
    HONE_C_FUNCTION(fmodf, Float2),
    HONE_C_FUNCTION(log, Double1),
    HONE_C_FUNCTION(logf, Float1),
    HONE_C_FUNCTION(log2, Double1),
    HONE_C_FUNCTION(log2f, Float1),
    HONE_C_FUNCTION(nearbyint, Double1),
    HONE_C_FUNCTION(nearbyintf, Float1),
    HONE_C_FUNCTION(pow, Double2),
    HONE_C_FUNCTION(powf, Float2),
    HONE_C_FUNCTION(rint, Double1),
    HONE_C_FUNCTION(rintf, Float1),
    HONE_C_FUNCTION(round, Double1),
    HONE_C_FUNCTION(roundf, Float1),
    HONE_C_FUNCTION(roundeven, Double1),
    HONE_C_FUNCTION(roundevenf, Float1),
    HONE_C_FUNCTION(sin, Double1),
    HONE_C_FUNCTION(sinf, Float1),
    HONE_C_FUNCTION(sincos, DoubleBoth),
    HONE_C_FUNCTION(sincosf, FloatBoth),
    HONE_C_FUNCTION(sqrt, Double1),
    HONE_C_FUNCTION(sqrtf, Float1),
    HONE_C_FUNCTION(tanh, Double1),
    HONE_C_FUNCTION(tanhf, Float1),
    HONE_C_FUNCTION(trunc, Double1),
    HONE_C_FUNCTION(truncf, Float1),
    HONE_C_FUNCTION(memcpy, void*(void*, const void*, size_t)),
    HONE_C_FUNCTION(memmove, void*(void*, const void*, size_t)),
    HONE_C_FUNCTION(memset, void*(void*, int, size_t)),
};
#undef HONE_C_FUNCTION

}  // namespace

void* find_c_function(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kFunctions), std::end(kFunctions),
                   [&](const CFunction& function) { return function.name == name; });
  return found == std::end(kFunctions) ? nullptr : found->address;
}

}  // namespace hone::backend
