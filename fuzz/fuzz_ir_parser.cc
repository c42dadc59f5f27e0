// Any text: the parser ends with a program or an error; a program prints and parses back to itself,
// and what the verifier accepts runs without a crash.
#include <string_view>

#include "hone/ir/equivalent.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/parser.h"
#include "hone/ir/passes/partition_loops.h"
#include "hone/ir/printer.h"
#include "hone/ir/random_gpu_program.h"
#include "hone/ir/random_program.h"
#include "hone/ir/verifier.h"

#include "fuzz.h"

namespace hone::fuzz {

std::string make_input(Rng& rng) {
  std::string text = ir::print(rng.chance(0.5) ? ir::random_program(rng.next())
                                               : ir::random_gpu_program(rng.next()));
  for (int64_t n = rng.between(0, 3); n > 0 && !text.empty(); --n) {
    const auto size = static_cast<int64_t>(text.size());
    const auto at = static_cast<size_t>(rng.below(size));
    switch (rng.below(5)) {
      case 0: text[at] = static_cast<char>(rng.below(256)); break;
      case 1: text.erase(at, static_cast<size_t>(rng.between(1, 6))); break;
      case 2: text[at] = static_cast<char>('0' + rng.below(10)); break;
      case 3:
        text.insert(at, text.substr(static_cast<size_t>(rng.below(size)),
                                    static_cast<size_t>(rng.between(1, 40))));
        break;
      default: std::swap(text[at], text[static_cast<size_t>(rng.below(size))]);
    }
  }
  return text;
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const Result<ir::Program> p = ir::parse_program({reinterpret_cast<const char*>(data), size});
  if (!p.ok()) {
    HONE_ASSERT(!p.status().message().empty(), "an error without message");
    return 0;
  }
  const Result<ir::Program> again = ir::parse_program(ir::print(*p));
  HONE_ASSERT(again.ok() && ir::equivalent(*p, *again), "printing and parsing changed the program");
  if (!ir::verify(*p).ok()) return 0;
  int64_t elements = 0;
  for (const ir::Param& param : p->params) {
    for (const int64_t d : param.buffer->shape) {
      if (d > 10'000) return 0;
    }
    elements += param.buffer->num_elements();
    if (elements > 1'000'000) return 0;
  }
  std::vector<Tensor> args = ir::random_arguments(*p, 1);
  (void)ir::run(*p, args, {.max_operations = 100'000});
  (void)ir::run(*p, args, {.max_operations = 100'000, .check_races = true});
  const ir::Program split = ir::partition_loops(*p);
  HONE_ASSERT(ir::verify(split).ok(), "a pass made an invalid program");
  return 0;
}
