#include "hone/backend/gpu/c_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "hone/base/assert.h"

namespace hone::backend::gpu {
namespace {

// A definition for types T, whose name ends in _T. U is the type without sign.
struct Generic {
  std::string_view name, types, text, needs;
};
constexpr Generic kGenerics[] = {
    // The second operand is the result if either is NaN.
    {"min", "int uint long ulong float double",
     "FUNCTION T min_T(T a, T b) { return a < b ? a : b; }\n", ""},
    {"max", "int uint long ulong float double",
     "FUNCTION T max_T(T a, T b) { return a > b ? a : b; }\n", ""},
    // The negation of the lowest number wraps.
    {"abs", "int long", "FUNCTION T abs_T(T a) { return a < 0 ? (T)(0 - (U)a) : a; }\n", ""},
    {"div", "int long", "FUNCTION T div_T(T a, T b) { return b == -1 ? (T)(0 - (U)a) : a / b; }\n",
     ""},
    {"rem", "int long", "FUNCTION T rem_T(T a, T b) { return b == -1 ? 0 : a % b; }\n", ""},
    {"floor_div", "int long",
     "FUNCTION T floor_div_T(T a, T b) {\n"
     "  if (b == -1) return (T)(0 - (U)a);\n"
     "  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);\n"
     "}\n",
     ""},
    {"floor_mod", "int long",
     "FUNCTION T floor_mod_T(T a, T b) {\n"
     "  if (b == -1) return 0;\n"
     "  const T r = a % b;\n"
     "  return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n"
     "}\n",
     ""},
    // A float as an integer: cut off, saturated, and 0 for NaN.
    {"small_of", "float double",
     "FUNCTION int small_of_T(T x, int low, int high) {\n"
     "  return x != x ? 0 : x >= (T)high ? high : x <= (T)low ? low : (int)x;\n"
     "}\n",
     ""},
    {"int_of", "float double",
     "FUNCTION int int_of_T(T x) {\n"
     "  if (x != x) return 0;\n"
     "  if (x >= (T)2147483648.0) return 2147483647;\n"
     "  return x <= (T)-2147483648.0 ? -2147483647 - 1 : (int)x;\n"
     "}\n",
     ""},
    {"uint_of", "float double",
     "FUNCTION uint uint_of_T(T x) {\n"
     "  if (!(x > (T)0)) return 0;\n"
     "  return x >= (T)4294967296.0 ? 4294967295u : (uint)x;\n"
     "}\n",
     ""},
    {"long_of", "float double",
     "FUNCTION long long_of_T(T x) {\n"
     "  if (x != x) return 0;\n"
     "  if (x >= (T)9223372036854775808.0) return 9223372036854775807l;\n"
     "  return x <= (T)-9223372036854775808.0 ? -9223372036854775807l - 1 : (long)x;\n"
     "}\n",
     ""},
    {"ulong_of", "float double",
     "FUNCTION ulong ulong_of_T(T x) {\n"
     "  if (!(x > (T)0)) return 0;\n"
     "  return x >= (T)18446744073709551616.0 ? 18446744073709551615ul : (ulong)x;\n"
     "}\n",
     ""},
};

struct Function {
  std::string_view name, opencl, cuda, needs;
};
constexpr std::string_view kSame = "";   // in place of CUDA's text: that of OpenCL
constexpr std::string_view kNone = "-";  // it is there without a definition
constexpr Function kFunctions[] = {
    {"INFINITY", kNone, "#define INFINITY __int_as_float(0x7f800000)\n", ""},
    {"NAN", kNone, "#define NAN __int_as_float(0x7fc00000)\n", ""},
    {"as_float", kNone, "FUNCTION float as_float(uint x) { return __uint_as_float(x); }\n", ""},
    {"as_uint", kNone, "FUNCTION uint as_uint(float x) { return __float_as_uint(x); }\n", ""},
    {"as_double", kNone,
     "FUNCTION double as_double(ulong x) { return __longlong_as_double((long long)x); }\n", ""},
    {"as_ulong", kNone,
     "FUNCTION ulong as_ulong(double x) { return (ulong)__double_as_longlong(x); }\n", ""},
    {"sigmoid_float", "FUNCTION float sigmoid_float(float x) { return 1.0f / (1.0f + exp(-x)); }\n",
     "FUNCTION float sigmoid_float(float x) { return 1.0f / (1.0f + expf(-x)); }\n", ""},
    {"sigmoid_double",
     "FUNCTION double sigmoid_double(double x) { return 1.0 / (1.0 + exp(-x)); }\n", kSame, ""},
    // Shifts by the width or more.
    {"shift_left",
     "FUNCTION ulong shift_left(ulong a, ulong by, uint bits) { return by >= bits ? 0 : a << by; }\n",
     kSame, ""},
    {"shift_right",
     "FUNCTION long shift_right(long a, ulong by) { return a >> (by < 63 ? by : 63); }\n", kSame,
     ""},
    {"shift_right_unsigned",
     "FUNCTION ulong shift_right_unsigned(ulong a, ulong by) { return by >= 64 ? 0 : a >> by; }\n",
     kSame, ""},
    // 16-bit floats, as their bits.
    {"float_of_half",
     "FUNCTION float float_of_half(ushort bits) { return vload_half(0, (const __private half*)&bits); }\n",
     "FUNCTION float float_of_half(ushort bits) {\n"
     "  float x;\n"
     "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(bits));\n"
     "  return x;\n"
     "}\n",
     ""},
    {"half_of_float",
     "FUNCTION ushort half_of_float(float x) {\n"
     "  ushort bits;\n"
     "  vstore_half_rte(x, 0, (__private half*)&bits);\n"
     "  return bits;\n"
     "}\n",
     "FUNCTION ushort half_of_float(float x) {\n"
     "  ushort bits;\n"
     "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x));\n"
     "  return bits;\n"
     "}\n",
     ""},
    // Cut off, with the last bit set where that is not exact: what is rounded once more comes out
    // as if it had been rounded once.
    {"float_to_odd",
     "FUNCTION float float_to_odd(double x) {\n"
     "  const float nearest = (float)x;\n"
     "  if ((double)nearest == x || x != x) return nearest;\n"
     "  const uint bits = as_uint(nearest);\n"
     "  return as_float((fabs((double)nearest) > fabs(x) ? bits - 1 : bits) | 1);\n"
     "}\n",
     kSame, "as_uint as_float"},
    {"half_of_double",
     "FUNCTION ushort half_of_double(double x) { return half_of_float(float_to_odd(x)); }\n", kSame,
     "half_of_float float_to_odd"},
    {"round_half",
     "FUNCTION float round_half(float x) { return float_of_half(half_of_float(x)); }\n", kSame,
     "float_of_half half_of_float"},
    {"float_of_bfloat",
     "FUNCTION float float_of_bfloat(ushort bits) { return as_float((uint)bits << 16); }\n", kSame,
     "as_float"},
    {"bfloat_of_float",
     "FUNCTION ushort bfloat_of_float(float x) {\n"
     "  const uint bits = as_uint(x);\n"
     "  if (x != x) return (ushort)(bits >> 16 | 0x40);\n"
     "  return (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n"
     "}\n",
     "FUNCTION ushort bfloat_of_float(float x) {\n"
     "  ushort bits;\n"
     "  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x));\n"
     "  return bits;\n"
     "}\n",
     "as_uint"},
    {"bfloat_of_double",
     "FUNCTION ushort bfloat_of_double(double x) { return bfloat_of_float(float_to_odd(x)); }\n",
     kSame, "bfloat_of_float float_to_odd"},
    {"round_bfloat",
     "FUNCTION float round_bfloat(float x) { return float_of_bfloat(bfloat_of_float(x)); }\n",
     kSame, "float_of_bfloat bfloat_of_float"},
    // Two of them in a word, the first in its low half.
    {"two_halves", kNone,
     "FUNCTION uint two_halves(ushort low, ushort high) { return (uint)low | (uint)high << 16; }\n",
     ""},
    {"halves_of_floats", kNone,
     "FUNCTION uint halves_of_floats(float low, float high) {\n"
     "  uint bits;\n"
     "  asm(\"cvt.rn.f16x2.f32 %0, %1, %2;\" : \"=r\"(bits) : \"f\"(high), \"f\"(low));\n"
     "  return bits;\n"
     "}\n",
     ""},
    {"bfloats_of_floats", kNone,
     "FUNCTION uint bfloats_of_floats(float low, float high) {\n"
     "  uint bits;\n"
     "  asm(\"cvt.rn.bf16x2.f32 %0, %1, %2;\" : \"=r\"(bits) : \"f\"(high), \"f\"(low));\n"
     "  return bits;\n"
     "}\n",
     ""},
    // Copies from global to shared memory that are there when they have been waited for. Zeros are
    // written where there is nothing to copy, whose address may be any.
    {"copy_async_4", kNone,
     "FUNCTION void copy_async_4(void* to, const void* from, bool there) {\n"
     "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4, %2;\" : : "
     "\"r\"((uint)__cvta_generic_to_shared(to)), \"l\"(from), \"r\"(there ? 4 : 0) : "
     "\"memory\");\n"
     "}\n",
     ""},
    {"copy_async_8", kNone,
     "FUNCTION void copy_async_8(void* to, const void* from, bool there) {\n"
     "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], 8, %2;\" : : "
     "\"r\"((uint)__cvta_generic_to_shared(to)), \"l\"(from), \"r\"(there ? 8 : 0) : "
     "\"memory\");\n"
     "}\n",
     ""},
    {"copy_async_16", kNone,
     "FUNCTION void copy_async_16(void* to, const void* from, bool there) {\n"
     "  asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\" : : "
     "\"r\"((uint)__cvta_generic_to_shared(to)), \"l\"(from), \"r\"(there ? 16 : 0) : "
     "\"memory\");\n"
     "}\n",
     ""},
    {"commit_copies", kNone,
     "FUNCTION void commit_copies() { asm volatile(\"cp.async.commit_group;\" : : : "
     "\"memory\"); }\n",
     ""},
    // At most `newest` groups are still under way.
    {"wait_copies", kNone,
     "template <int newest> FUNCTION void wait_copies() {\n"
     "  asm volatile(\"cp.async.wait_group %0;\" : : \"n\"(newest) : \"memory\");\n"
     "}\n",
     ""},
    // What the four lanes that have a row of a matrix exchange.
    {"quad_sum", kNone,
     "FUNCTION float quad_sum(float x) {\n"
     "  const uint quad = 15u << (threadIdx.x & 28);\n"
     "  const float y = __shfl_xor_sync(quad, x, 1);\n"
     "  x = x + y;\n"
     "  const float z = __shfl_xor_sync(quad, x, 2);\n"
     "  return x + z;\n"
     "}\n",
     ""},
    {"quad_max", kNone,
     "FUNCTION float quad_max(float x) {\n"
     "  const uint quad = 15u << (threadIdx.x & 28);\n"
     "  const float y = __shfl_xor_sync(quad, x, 1);\n"
     "  x = x > y ? x : y;\n"
     "  const float z = __shfl_xor_sync(quad, x, 2);\n"
     "  return x > z ? x : z;\n"
     "}\n",
     ""},
    {"quad_min", kNone,
     "FUNCTION float quad_min(float x) {\n"
     "  const uint quad = 15u << (threadIdx.x & 28);\n"
     "  const float y = __shfl_xor_sync(quad, x, 1);\n"
     "  x = x < y ? x : y;\n"
     "  const float z = __shfl_xor_sync(quad, x, 2);\n"
     "  return x < z ? x : z;\n"
     "}\n",
     ""},
    // All lanes of a warp exchange their values by these.
    {"warp_sum", kNone,
     "FUNCTION float warp_sum(float x) {\n"
     "#pragma unroll\n"
     "  for (int by = 16; by > 0; by /= 2) {\n"
     "    const float y = __shfl_xor_sync(0xffffffffu, x, by);\n"
     "    x = x + y;\n"
     "  }\n"
     "  return x;\n"
     "}\n",
     ""},
    {"warp_max", kNone,
     "FUNCTION float warp_max(float x) {\n"
     "#pragma unroll\n"
     "  for (int by = 16; by > 0; by /= 2) {\n"
     "    const float y = __shfl_xor_sync(0xffffffffu, x, by);\n"
     "    x = x > y ? x : y;\n"
     "  }\n"
     "  return x;\n"
     "}\n",
     ""},
    {"warp_min", kNone,
     "FUNCTION float warp_min(float x) {\n"
     "#pragma unroll\n"
     "  for (int by = 16; by > 0; by /= 2) {\n"
     "    const float y = __shfl_xor_sync(0xffffffffu, x, by);\n"
     "    x = x < y ? x : y;\n"
     "  }\n"
     "  return x;\n"
     "}\n",
     ""},
    // Matrix instructions and their operands (print_matrix.h).
    {"load_matrix_2", kNone,
     "FUNCTION void load_matrix_2(uint (&to)[2], const ushort* from) {\n"
     "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];\" : "
     "\"=r\"(to[0]), \"=r\"(to[1]) : \"r\"((uint)__cvta_generic_to_shared(from)) : \"memory\");\n"
     "}\n",
     ""},
    {"load_matrix_2_transposed", kNone,
     "FUNCTION void load_matrix_2_transposed(uint (&to)[2], const ushort* from) {\n"
     "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\" : "
     "\"=r\"(to[0]), \"=r\"(to[1]) : \"r\"((uint)__cvta_generic_to_shared(from)) : \"memory\");\n"
     "}\n",
     ""},
    {"load_matrix_4", kNone,
     "FUNCTION void load_matrix_4(uint (&to)[4], const ushort* from) {\n"
     "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\" : "
     "\"=r\"(to[0]), \"=r\"(to[1]), \"=r\"(to[2]), \"=r\"(to[3]) : \"r\"((uint)__cvta_generic_to_shared(from)) : \"memory\");\n"
     "}\n",
     ""},
    {"load_matrix_4_transposed", kNone,
     "FUNCTION void load_matrix_4_transposed(uint (&to)[4], const ushort* from) {\n"
     "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\" : "
     "\"=r\"(to[0]), \"=r\"(to[1]), \"=r\"(to[2]), \"=r\"(to[3]) : \"r\"((uint)__cvta_generic_to_shared(from)) : \"memory\");\n"
     "}\n",
     ""},
    {"tf32_of_float", kNone,
     "FUNCTION uint tf32_of_float(float x) {\n"
     "  uint y;\n"
     "  asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(y) : \"f\"(x));\n"
     "  return y;\n"
     "}\n",
     ""},
    {"matrix_f16", kNone,
     "FUNCTION void matrix_f16(float& d0, float& d1, float& d2, float& d3, const uint (&a)[4], "
     "uint b0, uint b1) {\n"
     "  asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\" : \"+f\"(d0), \"+f\"(d1), "
     "\"+f\"(d2), \"+f\"(d3) : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), "
     "\"r\"(b0), \"r\"(b1));\n"
     "}\n",
     ""},
    {"matrix_bf16", kNone,
     "FUNCTION void matrix_bf16(float& d0, float& d1, float& d2, float& d3, const uint (&a)[4], "
     "uint b0, uint b1) {\n"
     "  asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\" : \"+f\"(d0), \"+f\"(d1), "
     "\"+f\"(d2), \"+f\"(d3) : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), "
     "\"r\"(b0), \"r\"(b1));\n"
     "}\n",
     ""},
    {"matrix_tf32", kNone,
     "FUNCTION void matrix_tf32(float& d0, float& d1, float& d2, float& d3, const uint (&a)[4], "
     "uint b0, uint b1) {\n"
     "  asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\" : \"+f\"(d0), \"+f\"(d1), "
     "\"+f\"(d2), \"+f\"(d3) : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), "
     "\"r\"(b0), \"r\"(b1));\n"
     "}\n",
     ""},
};

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Puts types in the places of T and U, where these are words or the end of one after '_'.
std::string instance(std::string_view text, std::string_view type) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool alone = (i == 0 || !is_word_char(text[i - 1])) &&
                       (i + 1 == text.size() || (!is_word_char(text[i + 1]) && text[i + 1] != '_'));
    if (alone && text[i] == 'T') {
      out += type;
    } else if (alone && text[i] == 'U') {
      out += fmt::format("u{}", type);
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Found {
  std::string text;
  std::string_view needs;
  bool known = false;
};

Found find(Dialect dialect, std::string_view name) {
  for (const Function& f : kFunctions) {
    if (f.name != name) continue;
    const std::string_view text =
        dialect == Dialect::kOpenCl || f.cuda == kSame ? f.opencl : f.cuda;
    return {text == kNone ? "" : std::string(text), f.needs, true};
  }
  for (const Generic& g : kGenerics) {
    for (const std::string_view type : words(g.types)) {
      if (name == fmt::format("{}_{}", g.name, type))
        return {instance(g.text, type), g.needs, true};
    }
  }
  return {};
}

}  // namespace

std::string_view CFunctions::use(std::string_view name) {
  const auto [it, added] = used_.emplace(name);
  if (!added) return *it;
  const Found found = find(dialect_, name);
  HONE_ASSERT(found.known, "a function that is not in the table");
  for (const std::string_view needed : words(found.needs)) use(needed);
  return *it;
}

std::string CFunctions::definitions() const {
  // In the order of the table, where each function stands behind those that it calls.
  std::string out;
  for (const Function& f : kFunctions) {
    if (used_.contains(f.name)) out += find(dialect_, f.name).text;
  }
  for (const Generic& g : kGenerics) {
    for (const std::string_view type : words(g.types)) {
      const std::string name = fmt::format("{}_{}", g.name, type);
      if (used_.contains(name)) out += find(dialect_, name).text;
    }
  }
  return out;
}

bool CFunctions::is_name(std::string_view name) {
  if (find(Dialect::kOpenCl, name).known) return true;
  for (int op = 0; op < ir::kNumOps; ++op) {
    for (const bool is_double : {false, true}) {
      for (const Dialect dialect : {Dialect::kOpenCl, Dialect::kCuda}) {
        if (name == math_function(dialect, static_cast<ir::Op>(op), is_double)) return true;
      }
    }
  }
  return name == "vload_half" || name == "vstore_half_rte" || name == "exp2" || name == "exp2f";
}

std::string power_of_2_function(Dialect dialect, bool is_double) {
  return dialect == Dialect::kCuda && !is_double ? "exp2f" : "exp2";
}

std::string math_function(Dialect dialect, ir::Op op, bool is_double) {
  std::string name;
  switch (op) {
    case ir::Op::kRem: name = "fmod"; break;
    case ir::Op::kPow: name = "pow"; break;
    case ir::Op::kAbs: name = "fabs"; break;
    case ir::Op::kRound: name = "rint"; break;
    case ir::Op::kSqrt:
    case ir::Op::kExp:
    case ir::Op::kLog:
    case ir::Op::kTanh:
    case ir::Op::kErf:
    case ir::Op::kFloor:
    case ir::Op::kCeil:
    case ir::Op::kSin:
    case ir::Op::kCos:
    case ir::Op::kAtan: name = ir::op_info(op).name; break;
    default: return "";
  }
  if (dialect == Dialect::kCuda && !is_double) name += "f";
  return name;
}

}  // namespace hone::backend::gpu
