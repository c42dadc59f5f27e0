// search/bayes_searcher.h - batch Bayesian optimisation: a Gaussian process over the encoded
// decisions, or over the embeddings of the cost model's net, says how fast a schedule is expected
// to be and how sure that is, and a batch is chosen of a pool by an acquisition function (MetaTune,
// section 3.3, which leaves the choice of functions open).
#pragma once

#include "hone/search/acquisition.h"
#include "hone/search/embedding_rows.h"
#include "hone/search/guided_searcher.h"

namespace hone::search {

inline constexpr std::string_view kAcquisitions[] = {"ucb", "ei", "thompson"};
inline constexpr std::string_view kBatchRules[] = {"believer", "penalty"};
inline constexpr std::string_view kPriors[] = {"none", "model"};
inline constexpr std::string_view kProcessInputs[] = {"decisions", "embedding"};

struct BayesOptions {
  int acquisition = 0;  // index in kAcquisitions
  // How the points of a batch keep apart: the mean of a chosen point is believed as if it had been
  // measured, or places near it are penalised. Draws of Thompson's rule differ by themselves.
  int batch = 0;
  int inputs = 0;      // what the process is over: index in kProcessInputs
  int prior = 1;       // what the process corrects: nothing, or the cost model's predictions
  double kappa = 1.5;  // standard deviations below the mean that ucb hopes for
  int pool = 512;      // samples and mutations that a batch is chosen from
  int refined = 16;    // best of the pool, whose neighbours join it
  int first = 8;       // measurements before the process is asked
  [[nodiscard]] bool embeds() const { return kProcessInputs[inputs] == "embedding"; }
};

class BayesSearcher : public GuidedSearcher {
 public:
  BayesSearcher(std::shared_ptr<Guide> guide, const BayesOptions& options = {})
      : GuidedSearcher(std::move(guide)), options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "bayes"; }
  void fill(Batch& batch, int count) override;

 private:
  // Return what the process sees of legal points. A task that the model cannot embed is seen by its
  // decisions.
  [[nodiscard]] std::vector<std::vector<float>> rows(std::span<const space::Point> points);
  void scale_embedding();
  [[nodiscard]] std::vector<double> priors(std::span<const space::Point> points) const;
  // Returns a process that knows what was measured, with the length that explains it best.
  [[nodiscard]] GaussianProcess fit();
  // Adds the points that are new and legal.
  void add_to_pool(std::vector<space::Point> points, const GaussianProcess& process,
                   std::vector<PoolPoint>& pool);
  [[nodiscard]] std::vector<PoolPoint> make_pool(const GaussianProcess& process);
  [[nodiscard]] double acquisition(const PoolPoint& entry) const;
  void choose_by_draws(const GaussianProcess& process, std::vector<PoolPoint>& pool, Batch& batch,
                       int count);
  void choose(GaussianProcess& process, std::vector<PoolPoint>& pool, Batch& batch, int count);

  BayesOptions options_;
  std::optional<EmbeddingRows> embedding_;
  uint64_t revision_ = 0;  // the model's when the embedding was scaled
  double best_ = 0;        // least logarithm of seconds, measured or believed
  double offset_ = 0;      // mean of the values that the process learns
};

}  // namespace hone::search
