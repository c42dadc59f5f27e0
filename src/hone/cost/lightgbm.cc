#include "hone/cost/lightgbm.h"

#include <cstdlib>

#include "hone/base/file.h"
#include "hone/base/installation.h"
#include "hone/cost/shared_library.h"

namespace hone::cost {
namespace {

constexpr const char* kLibrary = "lib_lightgbm.so";
constexpr const char* kVariable = "HONE_LIGHTGBM";
constexpr int kFloat32 = 0;  // C_API_DTYPE_FLOAT32
constexpr int kAllTrees = -1;
constexpr int kSplitCounts = 0;     // as importance of features; not read
constexpr int kLevelsPerDepth = 2;  // factor for a tree whose levels stand for a number of leaves

std::string library_file() {
  const char* named = std::getenv(kVariable);
  if (named != nullptr && *named != '\0') return named;
  for (std::string& place : installed_places("lib/hone/lib_lightgbm.so")) {
    if (file_exists(place)) return std::move(place);
  }
  return kLibrary;
}

// These are the declarations of LightGBM/c_api.h, which the Python package lacks.
struct Library {
  Status status = ok_status();
  const char* (*get_last_error)() = nullptr;
  int (*dataset_create)(const void* data, int type, int32_t rows, int32_t columns, int row_major,
                        const char* parameters, const void* reference, void** out) = nullptr;
  int (*dataset_free)(void*) = nullptr;
  int (*booster_create)(const void* dataset, const char* parameters, void** out) = nullptr;
  int (*booster_free)(void*) = nullptr;
  int (*booster_update)(void*, const float* gradient, const float* hessian,
                        int* is_finished) = nullptr;
  int (*booster_get_predict)(void*, int dataset, int64_t* size, double* out) = nullptr;
  int (*booster_save)(void*, int first, int count, int importance, int64_t capacity, int64_t* size,
                      char* out) = nullptr;

  Library() {
    SharedLibrary shared(library_file());
    shared.load("LGBM_GetLastError", get_last_error);
    shared.load("LGBM_DatasetCreateFromMat", dataset_create);
    shared.load("LGBM_DatasetFree", dataset_free);
    shared.load("LGBM_BoosterCreate", booster_create);
    shared.load("LGBM_BoosterFree", booster_free);
    shared.load("LGBM_BoosterUpdateOneIterCustom", booster_update);
    shared.load("LGBM_BoosterGetPredict", booster_get_predict);
    shared.load("LGBM_BoosterSaveModelToString", booster_save);
    if (!shared.status().ok()) {
      status =
          error(Code::kUnsupported,
                "fitting trees by LightGBM needs its {}: pip install lightgbm, and let {} name "
                "that file ({})",
                kLibrary, kVariable, shared.status().message());
    }
  }

  [[nodiscard]] Status check(int returned) const {
    if (returned == 0) return ok_status();
    return error(Code::kInternal, "lightgbm: {}", get_last_error());
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

// One thread, no rows left out, nothing chosen by how long it takes. No value is missing, and
// features are not bundled, so that what is fitted is exactly what the trees say. `lambda_l2` is
// XGBoost's.
std::string common_parameters(size_t rows) {
  return fmt::format(
      "verbosity=-1 num_threads=1 deterministic=true force_col_wise=true seed=1 max_bin=255 "
      "bin_construct_sample_cnt={} use_missing=false enable_bundle=false feature_pre_filter=false",
      rows);
}

// The leaf that gains most is split next. Where a number of levels is all that is asked for, trees
// may be deeper, with as many leaves as a full tree of these has.
std::string tree_parameters(const BoostOptions& options) {
  const bool full = options.leaves == 0;
  return fmt::format(
      "objective=none learning_rate={} num_leaves={} max_depth={} min_data_in_leaf=1 "
      "min_sum_hessian_in_leaf={} min_gain_to_split={} lambda_l2=1 feature_fraction={} "
      "feature_fraction_seed=1",
      options.learning_rate, full ? 1 << options.depth : options.leaves,
      full ? kLevelsPerDepth * options.depth : options.depth, options.min_leaf_weight,
      options.min_gain, options.feature_share);
}

class LightgbmBooster : public Booster {
 public:
  ~LightgbmBooster() override {
    if (booster_ != nullptr) library().booster_free(booster_);
    if (rows_ != nullptr) library().dataset_free(rows_);
  }

  [[nodiscard]] Status init(const TrainingRows& rows, const BoostOptions& options) {
    const Library& gbm = library();
    width_ = rows.width;
    sums_.resize(rows.rows());
    const std::string common = common_parameters(rows.rows());
    HONE_RETURN_IF_ERROR(gbm.check(gbm.dataset_create(rows.features.data(), kFloat32,
                                                      static_cast<int32_t>(rows.rows()), rows.width,
                                                      1, common.c_str(), nullptr, &rows_)));
    const std::string all = common + " " + tree_parameters(options);
    return gbm.check(gbm.booster_create(rows_, all.c_str(), &booster_));
  }

  [[nodiscard]] Result<std::span<const float>> predict() override {
    int64_t size = 0;
    HONE_RETURN_IF_ERROR(
        library().check(library().booster_get_predict(booster_, 0, &size, sums_.data())));
    predicted_.assign(sums_.begin(), sums_.end());
    return std::span<const float>(predicted_);
  }

  [[nodiscard]] Status boost(std::span<float> gradient, std::span<float> hessian) override {
    int finished = 0;
    return library().check(
        library().booster_update(booster_, gradient.data(), hessian.data(), &finished));
  }

  [[nodiscard]] Result<Trees> trees() override {
    std::string text;
    int64_t size = 0;
    HONE_RETURN_IF_ERROR(save(text, size));
    text.resize(static_cast<size_t>(size));  // with a zero at its end
    HONE_RETURN_IF_ERROR(save(text, size));
    return parse_lightgbm(text.c_str(), width_);
  }

 private:
  [[nodiscard]] Status save(std::string& text, int64_t& size) {
    return library().check(library().booster_save(booster_, 0, kAllTrees, kSplitCounts,
                                                  std::ssize(text), &size, text.data()));
  }

  int width_ = 0;
  void* rows_ = nullptr;
  void* booster_ = nullptr;
  std::vector<double> sums_;
  std::vector<float> predicted_;
};

}  // namespace

Status lightgbm_status() { return library().status; }

Result<std::unique_ptr<Booster>> make_lightgbm_booster(const TrainingRows& rows,
                                                       const BoostOptions& options) {
  HONE_RETURN_IF_ERROR(lightgbm_status());
  return make_booster<LightgbmBooster>(rows, options);
}

}  // namespace hone::cost
