#include "hone/codegen/llvm/check_symbols.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "hone/codegen/llvm/backend.h"

namespace hone::codegen {
namespace {

// What the emitter calls, and what LLVM makes of loops, of vectors and of rounding where a
// processor has no instruction for it. C's functions of double; those of float end in f.
constexpr std::string_view kMath[] = {"atan",  "ceil", "cos",   "erf",       "exp",  "exp2",
                                      "floor", "fma",  "fmod",  "log",       "log2", "nearbyint",
                                      "pow",   "rint", "round", "roundeven", "sin",  "sincos",
                                      "sqrt",  "tanh", "trunc"};
constexpr std::string_view kOthers[] = {"memcpy", "memmove", "memset",
                                        // of the linker itself
                                        "_GLOBAL_OFFSET_TABLE_"};

bool is_provided(std::string_view name) {
  const auto among = [](const auto& list, std::string_view wanted) {
    return std::find(std::begin(list), std::end(list), wanted) != std::end(list);
  };
  if (among(kOthers, name) || among(kMath, name)) return true;
  return name.ends_with('f') && among(kMath, name.substr(0, name.size() - 1));
}

void collect_called(const ir::Stmt& s, std::set<std::string>& names) {
  if (s->kind == ir::StmtKind::kExtern) names.insert(s->name);
  for (const ir::Stmt& child : s->body) collect_called(child, names);
}

}  // namespace

Status check_symbols(const std::string& object, const ir::Program& program) {
  std::set<std::string> called;
  for (const ir::Phase& phase : program.phases) collect_called(phase.body, called);
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> names, undefined_symbols(object));
  for (const std::string& name : names) {
    if (!is_provided(name) && !called.contains(name)) {
      return error(Code::kInternal, "bug: the code of {} needs {}, which neither libc nor libm has",
                   program.name, name);
    }
  }
  return ok_status();
}

}  // namespace hone::codegen
