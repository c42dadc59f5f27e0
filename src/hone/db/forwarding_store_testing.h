// db/forwarding_store_testing.h - a store that forwards everything to another one, for tests whose
// stores count, fail or change something.
#pragma once

#include <string>
#include <vector>

#include "hone/db/store.h"

namespace hone::db {

class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(Store& store) : store_(store) {}
  Result<std::vector<int64_t>> add(std::span<const trial::Record> batch) override {
    return store_.add(batch);
  }
  Result<std::vector<trial::Record>> best(const BestQuery& query) override {
    return store_.best(query);
  }
  Result<std::vector<trial::Record>> query(const Filter& filter) override {
    return store_.query(filter);
  }
  Status set_verified(int64_t id, trial::Outcome found, std::string_view message) override {
    return store_.set_verified(id, found, message);
  }
  Status choose(uint64_t network, std::span<const Choice> choices) override {
    return store_.choose(network, choices);
  }
  Result<std::vector<Chosen>> chosen(uint64_t network) override { return store_.chosen(network); }
  Status remove(std::span<const int64_t> ids) override { return store_.remove(ids); }
  Result<std::vector<std::string>> verify() override { return store_.verify(); }

 private:
  Store& store_;
};

}  // namespace hone::db
