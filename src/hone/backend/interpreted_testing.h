// backend/interpreted_testing.h - a back end for tests. The code of its executables is the text of
// the loop program, which the interpreter runs; there are no functions in this process.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hone/backend/registry.h"
#include "hone/ir/interpreter.h"
#include "hone/ir/parser.h"
#include "hone/ir/printer.h"

namespace hone::backend::testing {

class InterpretedProgram final : public LoadedExecutable {
 public:
  explicit InterpretedProgram(ir::Program program) : program_(std::move(program)) {}
  // The symbol of an entry point is the number of its phase, and a phase has one tile.
  [[nodiscard]] Status run(const EntryPoint& entry, void* const* args, void* /*scratch*/,
                           int64_t first_tile, int64_t last_tile, int /*thread*/) const override {
    if (first_tile == last_tile) return ok_status();
    ir::Program phase = program_;
    phase.phases = {{program_.phases.at(std::stoul(entry.symbol)).body}};
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < phase.params.size(); ++i) {
      ir::Param& param = phase.params[i];
      Tensor& tensor = tensors.emplace_back(param.buffer->dtype, param.buffer->shape);
      std::memcpy(tensor.data(), args[i], static_cast<size_t>(tensor.bytes()));
      // A phase reads the results of those before it, and elements that it does not write stay.
      if (is_written(param)) param.role = ir::Role::kOutput;
    }
    HONE_RETURN_IF_ERROR(ir::run(phase, tensors, {.keep_outputs = true}));
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (is_written(phase.params[i]))
        std::memcpy(args[i], tensors[i].data(), static_cast<size_t>(tensors[i].bytes()));
    }
    return ok_status();
  }

 private:
  static bool is_written(const ir::Param& param) {
    return param.role != ir::Role::kInput && param.role != ir::Role::kConstant;
  }
  ir::Program program_;
};

class InterpretedBackend final : public Backend {
 public:
  [[nodiscard]] std::span<const ir::Pass> passes() const override { return {}; }
  [[nodiscard]] Result<Executable> compile(const ir::Program& program,
                                           const target::Target& /*target*/,
                                           std::string_view /*comment*/) const override {
    Executable made{.kind = target::Kind::kGpu, .code = ir::print(program)};
    for (const ir::Phase& phase : program.phases)
      made.entries.push_back({std::to_string(made.entries.size()), 1, phase.prepare});
    made.code_bytes = std::ssize(made.code.str());
    return made;
  }
  [[nodiscard]] Result<LoadedPtr> load(const Executable& executable) const override {
    HONE_ASSIGN_OR_RETURN(ir::Program program, ir::parse_program(executable.code.str()));
    return LoadedPtr(std::make_unique<const InterpretedProgram>(std::move(program)));
  }
};

// While it lives, devices of a kind have this back end, or none if it is null.
class DevicesHave {
 public:
  DevicesHave(target::Kind kind, std::shared_ptr<const Backend> backend)
      : kind_(kind), own_(of(kind).value()) {
    install(kind_, std::move(backend));
  }
  ~DevicesHave() { install(kind_, own_); }
  DevicesHave(const DevicesHave&) = delete;
  DevicesHave& operator=(const DevicesHave&) = delete;

 private:
  target::Kind kind_;
  std::shared_ptr<const Backend> own_;
};
class GpusHave : public DevicesHave {
 public:
  explicit GpusHave(std::shared_ptr<const Backend> backend)
      : DevicesHave(target::Kind::kGpu, std::move(backend)) {}
};
class GpusAreInterpreted : public GpusHave {
 public:
  GpusAreInterpreted() : GpusHave(std::make_shared<const InterpretedBackend>()) {}
};

inline target::Target some_gpu() { return {.name = "some-gpu", .part = target::Gpu()}; }

}  // namespace hone::backend::testing
