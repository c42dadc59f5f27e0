// backend/compiled_late_testing.h - a back end for tests in which candidates are compiled and never
// run: its code is the text of the loop program, and only what is loaded becomes machine code.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hone/backend/interpreted_testing.h"
#include "hone/ir/program_hash.h"

namespace hone::backend::testing {

class LoadedLate final : public LoadedExecutable {
 public:
  LoadedLate(Executable executable, LoadedPtr loaded)
      : executable_(std::move(executable)), loaded_(std::move(loaded)) {}
  // The symbol of an entry point is the number of its phase.
  [[nodiscard]] Status run(const EntryPoint& entry, void* const* args, void* scratch,
                           int64_t first_tile, int64_t last_tile, int thread) const override {
    return loaded_->run(executable_.entries.at(std::stoul(entry.symbol)), args, scratch, first_tile,
                        last_tile, thread);
  }

 private:
  Executable executable_;
  LoadedPtr loaded_;
};

class LateBackend final : public Backend {
 public:
  explicit LateBackend(std::shared_ptr<const Backend> own) : own_(std::move(own)) {}
  [[nodiscard]] std::span<const ir::Pass> passes() const override { return own_->passes(); }
  [[nodiscard]] Result<Executable> compile(const ir::Program& program,
                                           const target::Target& /*target*/,
                                           std::string_view /*comment*/) const override {
    Executable made{.code = ir::print(program), .content = ir::hash(program)};
    for (const ir::Phase& phase : program.phases)
      made.entries.push_back(
          {std::to_string(made.entries.size()), phase.num_tiles(), phase.prepare});
    made.scratch_bytes = kScratch;
    made.code_bytes = std::ssize(made.code.str());
    return made;
  }
  [[nodiscard]] Result<LoadedPtr> load(const Executable& executable) const override {
    HONE_ASSIGN_OR_RETURN(const ir::Program program, ir::parse_program(executable.code.str()));
    HONE_ASSIGN_OR_RETURN(Executable made, own_->compile(program, target::host(), ""));
    if (made.scratch_bytes > kScratch) return invalid("{} bytes of scratch", made.scratch_bytes);
    HONE_ASSIGN_OR_RETURN(LoadedPtr loaded, own_->load(made));
    return LoadedPtr(std::make_unique<const LoadedLate>(std::move(made), std::move(loaded)));
  }

 private:
  static constexpr int64_t kScratch = 1 << 20;  // more than any kernel of these tests has
  std::shared_ptr<const Backend> own_;
};

// While it lives, CPUs have this back end.
class CpusCompileLate : public DevicesHave {
 public:
  CpusCompileLate()
      : DevicesHave(target::Kind::kCpu,
                    std::make_shared<const LateBackend>(of(target::Kind::kCpu).value())) {}
};

}  // namespace hone::backend::testing
