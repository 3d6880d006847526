/* Embedding tables in a custom training loop, in C. embedding.cc is the same program in C++. */
#include <hctr/huge_ctr.h>
#include <stdio.h>

int main(void) {
  hctr_optimizer adagrad;
  hctr_optimizer_defaults(HCTR_ADAGRAD, HCTR_FORMULA_TORCH, &adagrad);
  hctr_table items = {.size = sizeof items, .name = "items", .dim = 4, .optimizer = &adagrad};
  hctr_feature bought = {.size = sizeof bought, .name = "bought", .table = "items", .pooling = HCTR_MEAN};
  hctr_embedding_options options = {.size = sizeof options, .tables = &items, .table_count = 1, .features = &bought,
                                    .feature_count = 1, .gpu = -1};
  int64_t keys[] = {17, 1000000000007, 17}, offsets[] = {0, 2, 3}, three = 3, shape[] = {2, 4}, batch = 0, rows = 0;
  float vectors[8], gradients[8];
  hctr_feature_keys batch_keys = {.size = sizeof batch_keys, .keys = {keys, HCTR_I64, 1, &three, NULL, -1},
                                  .offsets = {offsets, HCTR_I64, 1, &three, NULL, -1}};
  hctr_array to = {vectors, HCTR_F32, 2, shape, NULL, -1}, from = {gradients, HCTR_F32, 2, shape, NULL, -1};
  hctr_update update = {.size = sizeof update, .learning_rate = 0.1f};
  hctr_embedding* set = NULL;
  hctr_status status = hctr_embedding_create(&options, &set);
  for (int step = 0; step < 200 && status == HCTR_OK; ++step) {
    status = hctr_embedding_forward(set, 2, &batch_keys, &to, &batch);
    for (int i = 0; i < 8; ++i) gradients[i] = vectors[i] - 1;
    if (status == HCTR_OK) status = hctr_embedding_update(set, batch, &from, &update);
  }
  if (status != HCTR_OK || hctr_embedding_rows(set, "items", &rows) != HCTR_OK) return puts(hctr_error_message()), 1;
  printf("%lld rows; the first element is %.3f\n", (long long)rows, vectors[0]);
  hctr_embedding_destroy(set);
}
