#include "hone/backend/executable_cache.h"

#include <future>
#include <list>
#include <map>
#include <mutex>
#include <utility>

namespace hone::backend {
namespace {

constexpr int64_t kEntryBytes = 1024;  // estimate for an entry without its code

using Made = std::shared_ptr<const Result<Executable>>;

}  // namespace

struct ExecutableCache::State {
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

  // Under the lock. Only that there is no code for a program stays so: after a crash, or where no
  // compiler could start, the next one who asks tries again.
  void keep(const Key& key, const Result<Executable>& made) {
    const auto entry = entries.find(key);
    if (!made.ok() && made.status().code() != Code::kUnsupported) {
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

ExecutableCache::ExecutableCache(int64_t max_bytes) : state_(std::make_unique<State>()) {
  state_->max_bytes = max_bytes;
}
ExecutableCache::~ExecutableCache() = default;

Result<Executable> ExecutableCache::get(const Key& key,
                                        const std::function<Result<Executable>()>& compile) {
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
  const auto made = std::make_shared<const Result<Executable>>(compile());
  promise.set_value(made);
  const std::lock_guard lock(s.mutex);
  s.keep(key, *made);
  return *made;
}

ExecutableCache::Counts ExecutableCache::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

}  // namespace hone::backend
