#include "hone/backend/gpu/c_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "hone/backend/gpu/c_functions.h"
#include "hone/base/assert.h"

namespace hone::backend::gpu {
namespace {

// In the order of the alphabet. Names of types may be followed by a number of lanes.
constexpr std::string_view kWords[] = {
    "FUNCTION",     "INFINITY",     "NAN",          "NULL",          "alignas",
    "alignof",      "and",          "and_eq",       "asm",           "auto",
    "barrier",      "bitand",       "bitor",        "blockDim",      "blockIdx",
    "break",        "case",         "catch",        "class",         "compl",
    "complex",      "const",        "const_cast",   "constant",      "constexpr",
    "continue",     "decltype",     "default",      "delete",        "do",
    "dynamic_cast", "else",         "enum",         "event_t",       "explicit",
    "export",       "extern",       "false",        "first_tile",    "for",
    "friend",       "get_group_id", "get_local_id", "global",        "goto",
    "gridDim",      "if",           "imaginary",    "inline",        "kernel",
    "linux",        "local",        "mutable",      "namespace",     "new",
    "noexcept",     "not",          "not_eq",       "nullptr",       "operator",
    "or",           "or_eq",        "pipe",         "private",       "protected",
    "public",       "read_only",    "read_write",   "register",      "reinterpret_cast",
    "requires",     "restrict",     "return",       "sampler_t",     "shared_memory",
    "signed",       "sizeof",       "static",       "static_assert", "static_cast",
    "struct",       "switch",       "template",     "this",          "thread",
    "threadIdx",    "throw",        "true",         "try",           "typedef",
    "typeid",       "typename",     "uniform",      "union",         "unix",
    "unsigned",     "using",        "virtual",      "void",          "volatile",
    "warpSize",     "while",        "write_only",   "xor",           "xor_eq"};
constexpr std::string_view kTypes[] = {"bool", "char",     "double",    "float", "half",   "int",
                                       "long", "longlong", "ptrdiff_t", "short", "size_t", "uchar",
                                       "uint", "ulong",    "ulonglong", "ushort"};

// Names of macros, which are replaced in any scope, begin with these.
constexpr std::string_view kMacros[] = {
    "CHAR_", "CLK_",     "CL_", "CUDA",   "DBL_",  "FLT_",   "HALF_", "HUGE_",  "INT_",  "LLONG_",
    "LONG_", "MAXFLOAT", "M_",  "SCHAR_", "SHRT_", "UCHAR_", "UINT_", "ULONG_", "USHRT_"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::string as_identifier(std::string_view name) {
  std::string id;
  for (const char c : name) id += is_letter(c) || is_digit(c) ? c : '_';
  const auto begins = [&](std::string_view macro) { return id.starts_with(macro); };
  const bool is_macro = std::any_of(std::begin(kMacros), std::end(kMacros), begins);
  if (id.empty() || is_digit(id[0]) || id[0] == '_' || is_macro) id.insert(0, "v");
  return id;
}

}  // namespace

bool is_c_word(std::string_view word) {
  if (std::binary_search(std::begin(kWords), std::end(kWords), word)) return true;
  if (CFunctions::is_name(word)) return true;
  while (!word.empty() && is_digit(word.back())) word.remove_suffix(1);
  return std::find(std::begin(kTypes), std::end(kTypes), word) != std::end(kTypes);
}

std::string CNames::fresh(std::string_view wanted) {
  const std::string id = as_identifier(wanted);
  std::string name = id;
  for (int suffix = 1; is_c_word(name) || used_.contains(name); ++suffix)
    name = fmt::format("{}_{}", id, suffix);
  used_.insert(name);
  return name;
}

const std::string& CNames::declare(const void* object, std::string_view wanted) {
  std::string& name = names_[object];
  name = fresh(wanted);
  return name;
}

const std::string& CNames::of(const void* object) const {
  const auto it = names_.find(object);
  HONE_ASSERT(it != names_.end(), "a name is used outside of its scope");
  return it->second;
}

void CNames::release(const void* object) {
  const auto it = names_.find(object);
  if (it == names_.end()) return;
  used_.erase(it->second);
  names_.erase(it);
}

}  // namespace hone::backend::gpu
