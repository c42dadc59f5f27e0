#include "hone/backend/cpu/code_cache.h"

#include <algorithm>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "hone/backend/survive_crash.h"
#include "hone/base/hash.h"
#include "hone/ir/program_hash.h"

namespace hone::backend::cpu {
namespace {

constexpr int64_t kMaxBytes = 32 << 20;  // the objects of some 2,000 candidates
constexpr int64_t kEntryBytes = 1024;    // estimate for an entry without its object

using Made = std::shared_ptr<const Result<Executable>>;
using Key = std::pair<ir::Identity, uint64_t>;  // hashes of the program and the target

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

struct CodeCache::State {
  struct Entry {
    std::shared_future<Made> made;
    std::list<Key>::iterator used;
    int64_t bytes = 0;  // 0: somebody is compiling it
  };
  int64_t max_bytes = 0;
  mutable std::mutex mutex;
  std::map<Key, Entry> entries;
  std::list<Key> used;  // the latest first
  Counts counts;

  // Under the lock. A crash may have been for want of memory: the next one who asks tries again.
  void keep(const Key& key, const Result<Executable>& made) {
    const auto entry = entries.find(key);
    if (!made.ok() && made.status().code() == Code::kInternal) {
      used.erase(entry->second.used);
      entries.erase(entry);
      return;
    }
    entry->second.bytes = kEntryBytes + (made.ok() ? std::ssize(made->code.str()) : 0);
    counts.bytes += entry->second.bytes;
    make_room();
  }
  // Drops old entries; programs that are being compiled stay.
  void make_room() {
    for (auto oldest = used.end(); counts.bytes > max_bytes && oldest != used.begin();) {
      const auto entry = entries.find(*--oldest);
      if (entry->second.bytes == 0) continue;
      counts.bytes -= entry->second.bytes;
      entries.erase(entry);
      oldest = used.erase(oldest);
    }
  }
};

CodeCache::CodeCache(int64_t max_bytes) : state_(std::make_unique<State>()) {
  state_->max_bytes = max_bytes;
}
CodeCache::~CodeCache() = default;

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
  const Key key = {ir::identity(program), code_key(target)};
  State& s = *state_;
  std::promise<Made> promise;
  std::shared_future<Made> known;
  {
    const std::lock_guard lock(s.mutex);
    const auto [entry, added] = s.entries.try_emplace(key);
    if (added) {
      s.used.push_front(key);
      entry->second = {promise.get_future().share(), s.used.begin()};
      ++s.counts.compiled;
    } else {
      s.used.splice(s.used.begin(), s.used, entry->second.used);
      known = entry->second.made;
      ++s.counts.reused;
    }
  }
  if (known.valid()) return *known.get();
  const auto made =
      std::make_shared<const Result<Executable>>(compile_now(program, target, key.first));
  promise.set_value(made);
  const std::lock_guard lock(s.mutex);
  s.keep(key, *made);
  return *made;
}

CodeCache::Counts CodeCache::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

CodeCache& code_cache() {
  static CodeCache cache(kMaxBytes);
  return cache;
}

}  // namespace hone::backend::cpu
