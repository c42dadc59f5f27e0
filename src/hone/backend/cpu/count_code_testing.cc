#include "hone/backend/cpu/count_code_testing.h"

#include <cmath>

#include "hone/backend/cpu/single_step_testing.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/printer.h"

namespace hone::backend::cpu {

CountCheck check_counts(const ir::Program& program, const target::Target& target, int64_t limit) {
  CountCheck check;
  const auto fails = [&](std::string why) {
    check.wrong = target.name + ": " + std::move(why);
    return check;
  };
  const auto code = compile(program, target.cpu());
  if (!code.ok()) return fails("compile: " + code.status().message());
  const auto counts = count_code(code->object, code->phases, program, target.cpu(), {}, false);
  if (!counts.ok()) return fails("count: " + counts.status().message());
  const auto loaded = LoadedCode::load(code->object);
  if (!loaded.ok()) return fails("load: " + loaded.status().message());
  std::vector<Tensor> args = ir::random_arguments(program, 1);
  for (const CountedCode& counted : *counts) {
    if (!counted.failure.empty()) return fails(counted.symbol + ": " + counted.failure);
    if (counted.executed.all > limit) continue;
    const auto kernel = reinterpret_cast<hone_kernel>((*loaded)->symbol(counted.symbol));
    const std::optional<int64_t> executed =
        count_by_steps(kernel, args, code->scratch_bytes, 0, counted.tiles, 2 * limit);
    if (!executed) {
      check.skipped = true;
      return check;
    }
    if (*executed < 0) return fails(counted.symbol + ": it did not end, or crashed");
    ++check.phases;
    if (counted.executed.all == *executed) {
      ++check.exact;
    } else if (counted.exact()) {
      return fails(fmt::format("{}: counted {}, executed {}\n{}", counted.symbol,
                               counted.executed.all, *executed, ir::print(program)));
    } else {
      ++check.inexact;
      const double difference =
          static_cast<double>(counted.executed.all - *executed) / static_cast<double>(*executed);
      check.worst = std::max(check.worst, std::fabs(difference));
    }
  }
  return check;
}

}  // namespace hone::backend::cpu
