#include "hone/neural/backed_model.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "hone/base/log.h"
#include "hone/cost/bound_scores.h"
#include "hone/cost/embedder.h"
#include "hone/cost/registry.h"

namespace hone {
namespace {

using cost::Query;

const Query& query_of(const Query& query) { return query; }
const Query& query_of(const cost::Observation& observation) { return observation.query; }

// Returns the number of items at the beginning that are of one task and target.
template <typename Item>
size_t count_alike(std::span<const Item> items) {
  const auto is_other = [&](const Item& item) {
    const Query &first = query_of(items[0]), &query = query_of(item);
    return query.task != first.task || query.target != first.target;
  };
  return static_cast<size_t>(std::ranges::find_if(items, is_other) - items.begin());
}

class BackedModel final : public cost::CostModel,
                          public cost::BoundsPredictor,
                          public cost::Embedder {
 public:
  BackedModel(std::unique_ptr<cost::CostModel> model, std::string name)
      : model_(std::move(model)), name_(std::move(name)) {}

  [[nodiscard]] std::string_view name() const override { return model_->name(); }
  [[nodiscard]] bool knows(target::Kind kind) const override { return model_->knows(kind); }

  [[nodiscard]] Result<std::vector<double>> predict(std::span<const Query> queries) const override {
    std::vector<double> all;
    while (!queries.empty()) {
      const std::span<const Query> alike = queries.first(count_alike(queries));
      HONE_ASSIGN_OR_RETURN(const std::vector<double> seconds, predict_task(alike));
      all.insert(all.end(), seconds.begin(), seconds.end());
      queries = queries.subspan(alike.size());
    }
    return all;
  }

  [[nodiscard]] Status update(std::span<const cost::Observation> observations) override {
    while (!observations.empty()) {
      const auto alike = observations.first(count_alike(observations));
      HONE_RETURN_IF_ERROR(update_task(alike));
      observations = observations.subspan(alike.size());
    }
    return ok_status();
  }

  [[nodiscard]] bool learns() const override {
    const std::lock_guard lock(mutex_);
    return model_->learns() || !left_.empty();
  }

  [[nodiscard]] uint64_t revision() const override {
    const std::lock_guard lock(mutex_);
    uint64_t sum = model_->revision() + left_.size();
    for (const auto& [name, backup] : backups_) sum += backup ? backup->revision() : 0;
    return sum;
  }

  [[nodiscard]] Result<std::optional<std::vector<cost::BoundScores>>> predict_bounds(
      std::span<const Query> queries) const override {
    if (std::ranges::any_of(queries, [&](const Query& query) { return backup_of(query); }))
      return std::optional<std::vector<cost::BoundScores>>();
    return cost::predicted_bounds(*model_, queries);
  }

  [[nodiscard]] Status start_embedding() override { return cost::start_embedding(*model_); }

  [[nodiscard]] Result<cost::Embeddings> embed(std::span<const Query> queries) const override {
    if (std::ranges::any_of(queries, [&](const Query& query) { return backup_of(query); }))
      return error(Code::kUnsupported, "{}: the kernel is guided by another model", name_);
    return cost::embeddings_of(*model_, queries);
  }

 private:
  using TaskKey = std::pair<uint64_t, const target::Target*>;
  static TaskKey key_of(const Query& query) { return {query.task, query.target}; }

  // Returns who guides the query's task instead; null: nobody.
  [[nodiscard]] cost::CostModel* backup_of(const Query& query) const {
    const std::lock_guard lock(mutex_);
    const auto left = left_.find(key_of(query));
    return left == left_.end() ? nullptr : left->second;
  }

  // Leaves the query's task to the default model, which it returns.
  Result<cost::CostModel*> leave(const Query& query, const Status& why) const {
    const std::lock_guard lock(mutex_);
    const auto left = left_.find(key_of(query));
    if (left != left_.end()) return left->second;  // another thread found it out, too
    const std::string name = cost::default_model(*query.target);
    std::unique_ptr<cost::CostModel>& backup = backups_[name];
    if (backup == nullptr) {
      HONE_ASSIGN_OR_RETURN(backup, cost::make_model(name));
    }
    left_[key_of(query)] = backup.get();
    log_warning("cost model {}: the kernel {} is guided by '{}' instead: {}", name_,
                compute::kernel_class(*query.candidate->dag), name, why.message());
    return backup.get();
  }

  Result<std::vector<double>> predict_task(std::span<const Query> queries) const {
    if (const cost::CostModel* backup = backup_of(queries[0])) return backup->predict(queries);
    Result<std::vector<double>> seconds = model_->predict(queries);
    if (seconds.ok() || seconds.status().code() != Code::kUnsupported) return seconds;
    HONE_ASSIGN_OR_RETURN(const cost::CostModel* backup, leave(queries[0], seconds.status()));
    return backup->predict(queries);
  }

  Status update_task(std::span<const cost::Observation> observations) {
    if (cost::CostModel* backup = backup_of(observations[0].query))
      return backup->update(observations);
    const Status learned = model_->update(observations);
    if (learned.code() != Code::kUnsupported) return learned;
    HONE_ASSIGN_OR_RETURN(cost::CostModel * backup, leave(observations[0].query, learned));
    return backup->update(observations);
  }

  const std::unique_ptr<cost::CostModel> model_;
  const std::string name_;
  mutable std::mutex mutex_;  // of what follows
  // By name; null: it could not be made.
  mutable std::map<std::string, std::unique_ptr<cost::CostModel>> backups_;
  // Tasks that the model cannot judge, and who guides each; looked up only, never iterated.
  mutable std::map<TaskKey, cost::CostModel*> left_;
};

}  // namespace

std::unique_ptr<cost::CostModel> make_backed_model(std::unique_ptr<cost::CostModel> model,
                                                   std::string name) {
  return std::make_unique<BackedModel>(std::move(model), std::move(name));
}

}  // namespace hone
