#include "code_text.h"

#include <fmt/format.h>

#include "table.h"

namespace hone::tool {

std::string describe(const CodeFigures& code) {
  std::string text = fmt::format("{} registers a thread", code.registers);
  if (code.spill_bytes > 0) text += fmt::format(", {} bytes of them spilled", code.spill_bytes);
  if (code.spill_bytes == 0 && code.stack_bytes > 0)
    text += fmt::format(", {} bytes of arrays in local memory", code.stack_bytes);
  const auto count = [](int64_t number) { return format_count(static_cast<double>(number)); };
  text +=
      fmt::format("; {} bytes of shared memory a block; {} instructions: {} multiply-adds",
                  count(code.shared_bytes), count(code.instructions), count(code.multiply_adds));
  const auto add = [&](int64_t number, const char* what) {
    if (number > 0) text += fmt::format(", {} {}", count(number), what);
  };
  add(code.matrix, "products of matrices");
  add(code.global_loads, "loads of global memory");
  add(code.global_stores, "stores of global memory");
  add(code.shared_loads + code.shared_stores, "accesses of shared memory");
  add(code.local_accesses, "accesses of local memory");
  add(code.async_copies, "asynchronous copies");
  add(code.barriers, "barriers");
  return text;
}

Json code_json(const std::optional<CodeFigures>& code) {
  Json json;
  if (!code) return json;
  for_each_figure(*code, [&](const char* name, int64_t figure) { json[name] = figure; });
  return json;
}

}  // namespace hone::tool
