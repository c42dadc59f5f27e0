#include "hone/backend/cpu/code_cache.h"

#include <algorithm>
#include <utility>

#include "hone/backend/survive_crash.h"
#include "hone/base/hash.h"
#include "hone/ir/program_hash.h"

namespace hone::backend::cpu {
namespace {

constexpr int64_t kMaxBytes = 32 << 20;  // the objects of some 2,000 candidates

// All of a target that decides what code is made for it.
uint64_t code_key(const target::Cpu& target) {
  uint64_t key = hash_combine(hash_string(target.triple), hash_string(target.model));
  for (const std::string& feature : target.features) key = hash_combine(key, hash_string(feature));
  key = hash_combine(key, static_cast<uint64_t>(target.vector_bytes));
  return hash_combine(key, target.masked_memory ? 1 : 0);
}

Result<Executable> compile_now(const ir::Program& program, const target::Cpu& target,
                               const ir::Identity& identity) {
  const CompileOptions options = {.symbol_prefix =
                                      fmt::format("hone_kernel_{}", hash_hex(identity.first))};
  Executable made;
  HONE_RETURN_IF_ERROR(survive_crash([&]() -> Status {
    HONE_ASSIGN_OR_RETURN(ObjectCode code, cpu::compile(program, target, options));
    made = {.code = std::move(code.object),
            .entries = std::move(code.phases),
            .scratch_bytes = code.scratch_bytes,
            .code_bytes = code.text_bytes,
            .content = code.content,
            .cost = code.cost};
    return ok_status();
  }));
  return made;
}

void add(const CompileCost& from, CompileCost& to) {
  to.instructions += from.instructions, to.optimized += from.optimized;
  to.emit += from.emit, to.optimize += from.optimize, to.generate += from.generate;
}

}  // namespace

Result<Executable> CodeCache::compile(const ir::Program& program, const target::Cpu& target) {
  ir::Program run = program, prepare = program;
  std::erase_if(run.phases, [](const ir::Phase& phase) { return phase.prepare; });
  std::erase_if(prepare.phases, [](const ir::Phase& phase) { return !phase.prepare; });
  if (run.phases.empty() || prepare.phases.empty()) return compile_object(program, target);
  HONE_ASSIGN_OR_RETURN(Executable made, compile_object(run, target));
  HONE_ASSIGN_OR_RETURN(Executable packing, compile_object(prepare, target));
  made.prepare_code = std::move(packing.code);
  made.scratch_bytes = std::max(made.scratch_bytes, packing.scratch_bytes);
  made.code_bytes += packing.code_bytes;
  made.content = hash_combine(made.content, packing.content);
  add(packing.cost, made.cost);
  std::vector<EntryPoint> entries;
  auto next_run = made.entries.begin(), next_prepare = packing.entries.begin();
  for (const ir::Phase& phase : program.phases)
    entries.push_back(std::move(phase.prepare ? *next_prepare++ : *next_run++));
  made.entries = std::move(entries);
  return made;
}

Result<Executable> CodeCache::compile_object(const ir::Program& program,
                                             const target::Cpu& target) {
  const ir::Identity identity = ir::identity(program);
  return objects_.get({identity, code_key(target)},
                      [&] { return compile_now(program, target, identity); });
}

CodeCache& code_cache() {
  static CodeCache cache(kMaxBytes);
  return cache;
}

}  // namespace hone::backend::cpu
