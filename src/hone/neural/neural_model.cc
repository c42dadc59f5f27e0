#include "hone/neural/neural_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <tuple>

#include "hone/base/hash.h"
#include "hone/cost/bound_scores.h"
#include "hone/cost/embedder.h"
#include "hone/cost/registry.h"
#include "hone/db/registry.h"
#include "hone/neural/backed_model.h"
#include "hone/neural/net_adaptation.h"
#include "hone/neural/net_worker.h"
#include "hone/neural/restored_net.h"

namespace hone {
namespace {

using cost::Query;
using Row = NetWorker::Row;
using Compile = std::function<Result<CompiledNet>(const NetFile&)>;

// However sure a net is, a schedule is not so many times faster or slower than the default one.
constexpr double kFarthest = 12;  // as a logarithm

// A net ranks the schedules of a task. Seconds, which tell tasks apart, come from the analytic
// model: those of the task's default schedule, times what the net says a schedule takes relative to
// that one. Of a net that learned this factor (NetCard::tells_time) the score is it, and what the
// net says of the default schedule is not asked.
class NeuralModel : public cost::CostModel, public cost::BoundsPredictor, public cost::Embedder {
 public:
  // `adaptation` may be null.
  static Result<std::unique_ptr<cost::CostModel>> make(NetFile net, const std::string& path,
                                                       std::unique_ptr<NetAdaptation> adaptation,
                                                       Compile compile) {
    std::unique_ptr<NeuralModel> model(
        new NeuralModel(std::move(net), path, std::move(adaptation), std::move(compile)));
    const NetAdaptation* const adapts = model->adaptation_.get();
    HONE_RETURN_IF_ERROR(model->use(adapts == nullptr ? model->file_ : adapts->compiled()));
    return std::unique_ptr<cost::CostModel>(std::move(model));
  }

  [[nodiscard]] std::string_view name() const override { return file_.family; }

  // May be called by several threads at a time.
  [[nodiscard]] Result<std::vector<double>> predict(std::span<const Query> queries) const override {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<NetWorker> worker, take());
    Result<std::vector<double>> seconds = predict_on(*worker, queries);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(worker));
    return seconds;
  }

  [[nodiscard]] Result<std::optional<std::vector<cost::BoundScores>>> predict_bounds(
      std::span<const Query> queries) const override {
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<NetWorker> worker, take());
    auto bounds = bounds_on(*worker, queries);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(worker));
    return bounds;
  }

  // The net is compiled once more, with the input of its last layer as an output, unless it has
  // that.
  [[nodiscard]] Status start_embedding() override {
    if (!embeds_) embeds_ = !idle_.back()->head(0).empty();
    if (embeds_) return ok_status();
    HONE_ASSIGN_OR_RETURN(const NetFile with_head, adaptation_ == nullptr
                                                       ? file_with_head(file_, path_)
                                                       : adaptation_->compiled_with_head());
    HONE_RETURN_IF_ERROR(use(with_head));
    embeds_ = true;
    return ok_status();
  }

  [[nodiscard]] Result<cost::Embeddings> embed(std::span<const Query> queries) const override {
    if (!embeds_) return invalid("{}: start_embedding() was not called", path_);
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<NetWorker> worker, take());
    Result<cost::Embeddings> embeddings = embed_on(*worker, queries);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(worker));
    return embeddings;
  }

  // Without adaptation measurements correct it elsewhere only, per task (search/correction.h).
  [[nodiscard]] bool learns() const override { return adaptation_ != nullptr; }
  [[nodiscard]] uint64_t revision() const override { return revision_; }

  [[nodiscard]] Status update(std::span<const cost::Observation> observations) override {
    if (!learns()) return ok_status();
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<NetWorker> worker, take());
    const Status observed = observe(*worker, observations);
    idle_.push_back(std::move(worker));
    HONE_RETURN_IF_ERROR(observed);
    HONE_ASSIGN_OR_RETURN(const bool changed, adaptation_->learn());
    if (!changed) return ok_status();
    anchors_.clear();
    ++revision_;
    return ok_status();
  }

 private:
  NeuralModel(NetFile net, std::string path, std::unique_ptr<NetAdaptation> adaptation,
              Compile compile)
      : file_(std::move(net)),
        path_(std::move(path)),
        scale_(file_.card.log_seconds_per_score),
        tells_time_(file_.card.tells_time),
        compile_(std::move(compile)),
        adaptation_(std::move(adaptation)) {}

  // Asks the net of this file from now on.
  Status use(const NetFile& net) {
    HONE_ASSIGN_OR_RETURN(CompiledNet compiled, compile_(net));
    const std::lock_guard lock(mutex_);
    idle_.clear();
    compiled_ = std::move(compiled);
    Result<std::unique_ptr<NetWorker>> first = open();
    if (!first.ok()) return invalid("{}: {}", path_, first.status().message());
    idle_.push_back(*std::move(first));
    return ok_status();
  }

  using TaskKey = std::tuple<uint64_t, int, const target::Target*>;

  static TaskKey key_of(const Query& query) { return {query.task, query.threads, query.target}; }

  [[nodiscard]] std::span<const cost::net::Parameter> weights() const {
    return adaptation_ == nullptr ? std::span<const cost::net::Parameter>()
                                  : adaptation_->weights();
  }

  Result<std::unique_ptr<NetWorker>> take() const {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<NetWorker> worker = std::move(idle_.back());
        idle_.pop_back();
        return worker;
      }
    }
    return open();
  }

  Result<std::unique_ptr<NetWorker>> open() const {
    return NetWorker::open(compiled_.path, weights(), file_.card.heads);
  }

  // At most kNetBatch queries, as the net says by now.
  Result<std::vector<Row>> run(NetWorker& worker, std::span<const Query> queries) const {
    HONE_ASSIGN_OR_RETURN(std::vector<Row> rows, worker.run(queries));
    if (adaptation_ == nullptr) return rows;
    for (size_t i = 0; i < rows.size(); ++i) rows[i].score += adaptation_->change(worker.head(i));
    return rows;
  }

  Status observe(NetWorker& worker, std::span<const cost::Observation> observations) {
    std::vector<Query> queries;
    std::vector<double> seconds;
    for (const cost::Observation& observation : observations) {
      if (!std::isfinite(observation.seconds) || observation.seconds <= 0) continue;
      queries.push_back(observation.query);
      seconds.push_back(observation.seconds);
    }
    for (size_t begin = 0; begin < queries.size(); begin += kNetBatch) {
      const auto batch = std::span<const Query>(queries).subspan(
          begin, std::min(queries.size() - begin, static_cast<size_t>(kNetBatch)));
      // First: to ask for one may run the worker, which overwrites what it has read.
      std::vector<double> anchors;
      for (const Query& query : batch) {
        HONE_ASSIGN_OR_RETURN(const std::optional<Row> anchor, anchor_of(worker, query));
        anchors.push_back(anchor ? anchor->analytic_seconds : 0);
      }
      HONE_ASSIGN_OR_RETURN(const std::vector<Row> rows, worker.run(batch));
      for (size_t i = 0; i < batch.size(); ++i) {
        NetObservation observation = {
            .task = hash_combine(batch[i].task, static_cast<uint64_t>(batch[i].threads)),
            .seconds = seconds[begin + i],
            .default_seconds = anchors[i],
            .score = rows[i].score,
            .head = worker.head(i),
            .inputs = {}};
        for (const cost::Input input : file_.inputs)
          observation.inputs.push_back(worker.input(input, i));
        adaptation_->add(observation);
      }
    }
    return ok_status();
  }

  Result<std::vector<double>> predict_on(NetWorker& worker, std::span<const Query> queries) const {
    std::vector<double> seconds;
    seconds.reserve(queries.size());
    while (!queries.empty()) {
      const std::span<const Query> batch =
          queries.first(std::min(queries.size(), static_cast<size_t>(kNetBatch)));
      HONE_ASSIGN_OR_RETURN(const std::vector<Row> rows, run(worker, batch));
      Row anchor;
      for (size_t i = 0; i < batch.size(); ++i) {
        if (i == 0 || key_of(batch[i]) != key_of(batch[i - 1])) {
          HONE_ASSIGN_OR_RETURN(const std::optional<Row> known, anchor_of(worker, batch[i]));
          anchor = known.value_or(rows[i]);
        }
        const double relative = scale_ * (anchor.score - rows[i].score);
        seconds.push_back(std::max(anchor.analytic_seconds, 1e-12) *
                          std::exp(std::clamp(relative, -kFarthest, kFarthest)));
      }
      queries = queries.subspan(batch.size());
    }
    return seconds;
  }

  static Result<std::optional<std::vector<cost::BoundScores>>> bounds_on(
      NetWorker& worker, std::span<const Query> queries) {
    std::vector<cost::BoundScores> bounds;
    while (!queries.empty()) {
      const std::span<const Query> batch =
          queries.first(std::min(queries.size(), static_cast<size_t>(kNetBatch)));
      HONE_ASSIGN_OR_RETURN(const std::vector<Row> rows, worker.run(batch));
      for (const Row& row : rows) {
        if (!row.bounds) return std::optional<std::vector<cost::BoundScores>>();
        bounds.push_back(*row.bounds);
      }
      queries = queries.subspan(batch.size());
    }
    return std::optional(std::move(bounds));
  }

  static Result<cost::Embeddings> embed_on(NetWorker& worker, std::span<const Query> queries) {
    cost::Embeddings embeddings;
    while (!queries.empty()) {
      const std::span<const Query> batch =
          queries.first(std::min(queries.size(), static_cast<size_t>(kNetBatch)));
      HONE_RETURN_IF_ERROR(worker.run(batch).status());
      for (size_t i = 0; i < batch.size(); ++i) {
        const std::span<const float> head = worker.head(i);
        embeddings.emplace_back(head.begin(), head.end());
      }
      queries = queries.subspan(batch.size());
    }
    return embeddings;
  }

  // What scores of the query's task are relative to: its default schedule, if there is one.
  Result<std::optional<Row>> anchor_of(NetWorker& worker, const Query& query) const {
    const TaskKey key = key_of(query);
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = anchors_.find(key); known != anchors_.end()) return known->second;
    }
    std::optional<Row> anchor;
    const Result<space::Candidate> start =
        space::default_candidate(*query.candidate->dag, *query.target);
    if (start.ok()) {
      Query first = query;
      first.candidate = &*start;
      HONE_ASSIGN_OR_RETURN(const std::vector<Row> rows, run(worker, {&first, 1}));
      anchor = rows[0];
      // What a head was fitted to is known up to a constant of the task.
      if (tells_time_) anchor->score = adaptation_ ? adaptation_->change(worker.head(0)) : 0;
    }
    const std::lock_guard lock(mutex_);
    return anchors_.emplace(key, anchor).first->second;
  }

  const NetFile file_;
  const std::string path_;  // of the file
  double scale_;
  bool tells_time_;
  Compile compile_;
  CompiledNet compiled_;
  bool embeds_ = false;  // the compiled net has the output "head", which embed() returns
  std::unique_ptr<NetAdaptation> adaptation_;  // null: it learns nothing
  uint64_t revision_ = 0;
  mutable std::mutex mutex_;  // of what follows
  mutable std::vector<std::unique_ptr<NetWorker>> idle_;
  mutable std::map<TaskKey, std::optional<Row>> anchors_;  // looked up only, never iterated
};

bool is_net_file(std::string_view name) { return name.ends_with(".onnx"); }

Status check_adapts(const std::string& cost, const std::string& adapt, const std::string& torch) {
  if (adapt == "none") return ok_status();
  HONE_RETURN_IF_ERROR(check_adaptation(adapt, torch));
  if (!is_net_file(cost))
    return invalid(
        "--adapt {}: the cost model '{}' is no net, expected a FILE.onnx that hone train wrote: "
        "others learn without",
        adapt, cost);
  return ok_status();
}

// Whether there are kernels that the net cannot read: those larger than the template of graphs.
bool reads_template(const NetFile& net) {
  return std::ranges::find(net.inputs, cost::Input::kTemplateMask) != net.inputs.end();
}

// Beside the database, or where it would be by default.
std::string folder_for(const CostOptions& options) {
  if (!options.use_db) return "";
  std::string where = options.db;
  if (where.empty() || db::is_server(where)) {
    const Result<std::string> path = db::store_path("", {});
    if (!path.ok()) return "";
    where = *path;
  }
  const std::filesystem::path folder = std::filesystem::path(where).parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace

Result<cost::ModelWithCard> make_cost_model_with_card(const CostOptions& options,
                                                      const NetCompiler& compiler) {
  HONE_RETURN_IF_ERROR(check_adapts(options.cost, options.adapt, options.torch));
  if (!is_net_file(options.cost)) return cost::make_model_with_card(options.cost, options.use);
  HONE_ASSIGN_OR_RETURN(NetFile net, read_net(options.cost));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<NetAdaptation> adaptation,
                        make_adaptation(options.adapt, net, options.cost, options.torch));
  const Compile compile = [path = options.cost, folder = folder_for(options),
                           compiler](const NetFile& file) {
    return compile_net(file, path, folder, compiler);
  };
  cost::ModelWithCard made = {.model = nullptr, .card = net.card.notes};
  made.card["family"] = net.family;
  const bool may_be_too_small = reads_template(net);
  HONE_ASSIGN_OR_RETURN(
      made.model, NeuralModel::make(std::move(net), options.cost, std::move(adaptation), compile));
  if (may_be_too_small && options.use == cost::Use::kSearch)
    made.model = make_backed_model(std::move(made.model), options.cost);
  return made;
}

}  // namespace hone
