#include "hone/artifact/interface_names.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>

#include "hone/artifact/artifact.h"
#include "hone/artifact/embedded_runtime.h"
#include "hone/artifact/system_symbols.h"

namespace hone::artifact {
namespace {

// The prefix is also the name of a type, in C and in C++, after the standard headers that an
// artifact's header includes. GNU's compilers define linux and unix as 1.
constexpr std::string_view kReserved[] = {"alignas",
                                          "alignof",
                                          "and",
                                          "and_eq",
                                          "asm",
                                          "auto",
                                          "bitand",
                                          "bitor",
                                          "bool",
                                          "break",
                                          "case",
                                          "catch",
                                          "char",
                                          "char16_t",
                                          "char32_t",
                                          "char8_t",
                                          "class",
                                          "co_await",
                                          "co_return",
                                          "co_yield",
                                          "compl",
                                          "concept",
                                          "const",
                                          "const_cast",
                                          "consteval",
                                          "constexpr",
                                          "constinit",
                                          "continue",
                                          "decltype",
                                          "default",
                                          "delete",
                                          "do",
                                          "double",
                                          "dynamic_cast",
                                          "else",
                                          "enum",
                                          "explicit",
                                          "export",
                                          "extern",
                                          "false",
                                          "float",
                                          "for",
                                          "friend",
                                          "goto",
                                          "i386",
                                          "if",
                                          "import",
                                          "inline",
                                          "int",
                                          "linux",
                                          "long",
                                          "main",
                                          "mutable",
                                          "namespace",
                                          "new",
                                          "noexcept",
                                          "not",
                                          "not_eq",
                                          "nullptr",
                                          "offsetof",
                                          "operator",
                                          "or",
                                          "or_eq",
                                          "private",
                                          "protected",
                                          "public",
                                          "register",
                                          "requires",
                                          "reinterpret_cast",
                                          "restrict",
                                          "return",
                                          "short",
                                          "signed",
                                          "sizeof",
                                          "static",
                                          "std",
                                          "struct",
                                          "switch",
                                          "static_assert",
                                          "static_cast",
                                          "template",
                                          "this",
                                          "throw",
                                          "thread_local",
                                          "true",
                                          "try",
                                          "typedef",
                                          "typeid",
                                          "typename",
                                          "typeof",
                                          "union",
                                          "unix",
                                          "unsigned",
                                          "typeof_unqual",
                                          "using",
                                          "virtual",
                                          "void",
                                          "volatile",
                                          "while",
                                          "xor",
                                          "xor_eq",
                                          "NULL"};

// The macros of <stdint.h> and of an artifact's header itself: INT8_MAX, SIZE_MAX, UINT64_C,
// HONE_ABI_VERSION. POSIX reserves all names that end in _t.
bool is_reserved_form(std::string_view name) {
  for (const char* end : {"_MAX", "_MIN", "_WIDTH", "_C"}) {
    if (name.ends_with(end) &&
        std::none_of(name.begin(), name.end(), [](unsigned char c) { return std::islower(c); }))
      return true;
  }
  return name == "HONE_ABI_VERSION" || name.ends_with("_t");
}

bool is_identifier(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '_' || (static_cast<unsigned char>(c) < 128 && std::isalnum(c) != 0);
  });
}

// `text` with every whole identifier renamed.
template <typename Rename>
std::string rename_identifiers(std::string_view text, Rename&& rename) {
  std::string result;
  while (!text.empty()) {
    size_t end = 0;
    while (end < text.size() && is_identifier(text.substr(0, end + 1))) ++end;
    const std::string word(text.substr(0, std::max<size_t>(end, 1)));
    result += end > 0 ? rename(word) : word;
    text.remove_prefix(word.size());
  }
  return result;
}

}  // namespace

namespace {

// The names of an artifact's header that begin with the prefix, types too.
std::set<std::string> interface_identifiers(const std::string& prefix) {
  std::set<std::string> names;
  rename_identifiers(runtime_header_text(), [&](const std::string& word) {
    if (word == kOwnVersion || word.starts_with(kOwnPrefix))
      names.insert(exported_name(word, prefix));
    return word;
  });
  return names;
}

}  // namespace

Status check_prefix(const std::string& prefix) {
  if (!is_identifier(prefix)) return invalid("found prefix '{}', expected a C identifier", prefix);
  constexpr const char* kUsed =
      "found prefix '{}', which C, C++ or libc uses{}, expected another identifier";
  const bool keyword =
      std::find(std::begin(kReserved), std::end(kReserved), prefix) != std::end(kReserved);
  if (keyword || is_reserved_form(prefix)) return invalid(kUsed, prefix, "");
  if (prefix[0] == '_' || prefix.find("__") != std::string::npos || prefix.back() == '_') {
    return invalid(kUsed, prefix, " (a name that begins with _ or has __ is reserved)");
  }
  for (const std::string& name : interface_identifiers(prefix)) {
    // A type of this name would only be in the way of a function that programs of today call.
    if (const auto library = system_library_of(name, name == prefix))
      return invalid(kUsed, prefix, fmt::format(" ({} is in {})", name, *library));
  }
  return ok_status();
}

std::vector<std::string> interface_functions() {
  const std::string text(runtime_header_text());
  std::vector<std::string> names;
  for (size_t at = text.find("hone_"); at != std::string::npos; at = text.find("hone_", at + 1)) {
    size_t end = at;
    while (end < text.size() && is_identifier(text.substr(at, end + 1 - at))) ++end;
    const std::string name = text.substr(at, end - at);
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    if (end < text.size() && text[end] == '(' && !known) names.push_back(name);
  }
  return names;
}

std::string exported_name(const std::string& function, const std::string& prefix) {
  if (prefix == kOwnPrefix) return function;
  if (function == kOwnVersion) return prefix + "_abi_version";
  return prefix + function.substr(std::strlen(kOwnPrefix));
}

std::string interface_text(const std::string& prefix) {
  std::string text(runtime_header_text());
  text.erase(0, text.find("#ifndef"));
  if (prefix == kOwnPrefix) return text;
  return rename_identifiers(text, [&](const std::string& word) {
    // Prefixes that differ in case only have guards that differ.
    if (word == "HONE_MODEL_H_") return prefix + "_H_";
    const bool ours = word == kOwnVersion || word.starts_with(kOwnPrefix);
    return ours ? exported_name(word, prefix) : word;
  });
}

}  // namespace hone::artifact
