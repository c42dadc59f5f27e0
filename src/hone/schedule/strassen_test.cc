#include "hone/schedule/strassen.h"

#include "hone/compute/dag_testing.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

compute::Dag product(int64_t rows, int64_t columns, int64_t sum, int64_t images = 3) {
  return compute::testing::conv2d({.h = images,
                                   .w = rows,
                                   .ic = sum,
                                   .oc = columns,
                                   .kernel = 1,
                                   .pad = 0,
                                   .border = 0,
                                   .residual = true});
}

TEST(strassen, keeps_the_meaning_of_products_of_any_size) {
  for (const int64_t rows : {2, 6}) {
    for (const int64_t columns : {8, 24}) {
      for (const int64_t sum : {2, 10}) {
        SCOPED_TRACE(fmt::format("{} x {} x {}", rows, columns, sum));
        expect_same(product(rows, columns, sum), "strassen(conv2d, ow, 4)", 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace hone::schedule
