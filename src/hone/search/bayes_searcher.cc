#include "hone/search/bayes_searcher.h"

#include <algorithm>
#include <cmath>

#include "hone/search/decision_process.h"
#include "hone/search/prediction.h"

namespace hone::search {
namespace {

constexpr size_t kMostDrawn = 128;  // points of a joint draw
constexpr int kScaled = 128;        // samples by which the numbers of an embedding are scaled
constexpr size_t kParents = 8;    // measured points whose mutations and neighbours are in the pool
constexpr double kFailure = 0.7;  // logarithm of how much slower than the slowest a failure counts
// Shares of the variance of what was observed, and the noise of measuring.
constexpr DecisionVariances kShares = {
    .shared = 0.15, .linear = 0.35, .local = 0.5, .noise = 0.002};

double log_of(double seconds) { return std::log(std::max(seconds, 1e-12)); }

}  // namespace

std::vector<std::vector<float>> BayesSearcher::rows(std::span<const space::Point> points) {
  if (embedding_) {
    if (auto embedded = embedding_->rows(points)) return *std::move(embedded);
    embedding_.reset();
  }
  std::vector<std::vector<float>> rows;
  for (const space::Point& point : points)
    rows.push_back(decision_row(point.sketch, guide().space().encode(point)));
  return rows;
}

// Numbers of an embedding are of any size, and change when the net learns.
void BayesSearcher::scale_embedding() {
  const uint64_t revision = guide().task().model->revision();
  if (!options_.embeds() || (embedding_ && revision == revision_)) return;
  std::vector<space::Point> samples = guide().space().default_points();
  for (int i = 0; i < kScaled; ++i) samples.push_back(guide().part().sample(guide().rng()));
  embedding_ = EmbeddingRows::make(guide().task(), samples);
  revision_ = revision;
}

std::vector<double> BayesSearcher::priors(std::span<const space::Point> points) const {
  std::vector<double> logs = predict_log_seconds(guide().task(), points);
  if (kPriors[options_.prior] == "none") {
    for (double& log : logs) log = std::isfinite(log) ? 0 : log;
  }
  return logs;
}

GaussianProcess BayesSearcher::fit() {
  const std::vector<MeasuredPoint>& history = guide().history();
  std::vector<space::Point> points;
  best_ = guide().measured().empty() ? 0 : log_of(guide().measured()[0].seconds);
  double worst = best_;
  for (const MeasuredPoint& observed : history) {
    points.push_back(observed.point);
    if (std::isfinite(observed.seconds)) worst = std::max(worst, log_of(observed.seconds));
  }
  const std::vector<double> prior = priors(points);
  std::vector<double> values;
  std::vector<space::Point> legal;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(prior[i])) continue;
    const double seconds = history[i].seconds;
    const double log = std::isfinite(seconds) ? log_of(seconds) : worst + kFailure;
    values.push_back(log - prior[i]);
    legal.push_back(std::move(points[i]));
  }
  offset_ = 0;
  double variance = 0;
  const auto count = static_cast<double>(std::max<size_t>(values.size(), 1));
  for (const double value : values) offset_ += value / count;
  for (const double value : values) variance += (value - offset_) * (value - offset_) / count;
  for (double& value : values) value -= offset_;
  return fit_decisions(rows(legal), values, kShares.times(std::max(variance, 0.02)));
}

void BayesSearcher::add_to_pool(std::vector<space::Point> points, const GaussianProcess& process,
                                std::vector<PoolPoint>& pool) {
  if (!guide().part().is_whole()) {
    for (space::Point& point : points) point = guide().part().project(point);
  }
  std::unordered_set<uint64_t> present;
  for (const PoolPoint& entry : pool) present.insert(space::hash(entry.point));
  std::erase_if(points, [&](const space::Point& point) {
    return !guide().proposals().fresh(point) || !present.insert(space::hash(point)).second;
  });
  std::vector<double> prior = priors(points);
  size_t count = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(prior[i])) continue;
    if (count != i) points[count] = std::move(points[i]), prior[count] = prior[i];
    ++count;
  }
  points.resize(count);
  std::vector<std::vector<float>> seen = rows(points);
  for (size_t i = 0; i < count; ++i) {
    PoolPoint entry{std::move(points[i]), prior[i] + offset_, {std::move(seen[i])}};
    process.follow(entry.followed);
    pool.push_back(std::move(entry));
  }
}

std::vector<PoolPoint> BayesSearcher::make_pool(const GaussianProcess& process) {
  std::vector<space::Point> points = guide().space().default_points();
  const std::vector<MeasuredPoint>& measured = guide().measured();
  const size_t parents = std::min(kParents, measured.size());
  for (size_t i = 0; i < parents; ++i) {
    for (space::Point& next : guide().part().neighbours(measured[i].point))
      points.push_back(std::move(next));
  }
  for (int i = 0; i < options_.pool; ++i) {
    const bool mutation = parents > 0 && i % 2 == 1;
    const size_t parent = static_cast<size_t>(i / 2) % std::max<size_t>(parents, 1);
    points.push_back(mutation ? guide().part().mutate(measured[parent].point, guide().rng())
                              : guide().part().sample(guide().rng()));
  }
  std::vector<PoolPoint> pool;
  add_to_pool(std::move(points), process, pool);
  std::vector<const PoolPoint*> order;
  for (const PoolPoint& entry : pool) order.push_back(&entry);
  std::ranges::stable_sort(order, std::greater(),
                           [&](const PoolPoint* entry) { return acquisition(*entry); });
  std::vector<space::Point> around;
  for (size_t i = 0; i < std::min(order.size(), static_cast<size_t>(options_.refined)); ++i) {
    for (space::Point& next : guide().part().neighbours(order[i]->point))
      around.push_back(std::move(next));
  }
  add_to_pool(std::move(around), process, pool);
  return pool;
}

double BayesSearcher::acquisition(const PoolPoint& entry) const {
  if (kAcquisitions[options_.acquisition] == "ei")
    return entry.penalty * expected_improvement(best_, entry.mean(), entry.deviation());
  return entry.penalty * confidence_bound(best_, entry.mean(), entry.deviation(), options_.kappa);
}

void BayesSearcher::choose_by_draws(const GaussianProcess& process, std::vector<PoolPoint>& pool,
                                    Batch& batch, int count) {
  std::ranges::stable_sort(pool, std::greater(),
                           [&](const PoolPoint& entry) { return acquisition(entry); });
  if (pool.size() > kMostDrawn) pool.resize(kMostDrawn);
  std::vector<std::vector<float>> rows;
  for (const PoolPoint& entry : pool) rows.push_back(entry.followed.row);
  const GaussianProcess::Joint joint = process.joint(rows);
  for (int added = 0, draws = 0; added < count && draws < 8 * count && !pool.empty(); ++draws) {
    std::vector<double> normals(rows.size());
    for (double& normal : normals) normal = guide().rng().normal();
    const std::vector<double> values = joint.draw(normals);
    size_t best = 0;
    for (size_t i = 1; i < values.size(); ++i) {
      if (pool[i].prior + values[i] < pool[best].prior + values[best]) best = i;
    }
    added += batch.add(pool[best].point);
  }
}

void BayesSearcher::choose(GaussianProcess& process, std::vector<PoolPoint>& pool, Batch& batch,
                           int count) {
  for (int added = 0; added < count && !pool.empty();) {
    const auto best = std::ranges::max_element(
        pool, {}, [&](const PoolPoint& entry) { return acquisition(entry); });
    const PoolPoint chosen = std::move(*best);
    pool.erase(best);
    if (!batch.add(chosen.point)) continue;
    ++added;
    if (kBatchRules[options_.batch] == "penalty") {
      penalise(chosen, best_, pool);
    } else {
      believe(chosen, process, best_, pool);
    }
  }
}

void BayesSearcher::fill(Batch& batch, int count) {
  if (std::ssize(guide().history()) < options_.first) {
    // Half of what the model finds best, half drawn at random.
    std::vector<space::Point> samples;
    for (int i = 0; i < options_.pool; ++i) samples.push_back(guide().part().sample(guide().rng()));
    const int random = count / 2;
    batch.add_best(guide().rank(samples), count - random);
    for (size_t i = 0, added = 0; i < samples.size() && static_cast<int>(added) < random; ++i)
      added += batch.add(samples[i]);
    return;
  }
  scale_embedding();
  GaussianProcess process = fit();
  std::vector<PoolPoint> pool = make_pool(process);
  if (kAcquisitions[options_.acquisition] == "thompson") {
    choose_by_draws(process, pool, batch, count);
  } else {
    choose(process, pool, batch, count);
  }
}

}  // namespace hone::search
