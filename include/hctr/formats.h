// The byte layouts of the files that this program shares with others: data sets, file lists, model files.
//
// All numbers are little-endian and packed without padding. Layouts marked "HugeCTR" are those of HugeCTR 2.x and do
// not change. Files marked "ours" have a "schema" number, which is raised when older readers would misread them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace hctr::formats {

static_assert(std::endian::native == std::endian::little, "files are read and written by copying memory");

// ---- Norm data file (HugeCTR) --------------------------------------------------------------------------------------
//
//   file    = block(NormHeader) block(sample) * number_of_records
//   sample  = f32 label[label_dim], f32 dense[dense_dim], then per slot: i32 nnz, key[nnz]
//   key     = u32 or i64, the same width in the whole file; the header does not state which
//   block   = payload                                               error_check 0, "check": "None"
//           | i32 payload bytes, payload, u8 sum of payload bytes   error_check 1, "check": "Sum"
//
// Slots are in the order of the sparse inputs of the `Data` layer. The slots of the first input come first.

struct NormHeader {
  int64_t error_check = 0;        ///< 0: blocks have no frame; 1: all blocks, also the header, have a frame
  int64_t number_of_records = 0;  ///< samples in this file
  int64_t label_dim = 0;
  int64_t dense_dim = 0;
  int64_t slot_num = 0;  ///< slots per sample, summed over all sparse inputs
  int64_t reserved[3] = {0, 0, 0};
};
static_assert(sizeof(NormHeader) == 64);

inline constexpr int64_t kFrameLengthBytes = 4;  ///< Size of the length field before a framed payload.
inline constexpr int64_t kFrameSumBytes = 1;     ///< Size of the checksum after a framed payload.

// ---- File list (HugeCTR) -------------------------------------------------------------------------------------------
//
//   Text. Line 1: the number of files N, at least 1. Then N paths, one per line. Further lines are ignored.

// ---- Key set (HugeCTR 2.3) -----------------------------------------------------------------------------------------
//
// The distinct keys of the data files in a file list, as u32 or i64 like in those files; no header.

// ---- Model files (HugeCTR) -----------------------------------------------------------------------------------------
//
//   dense    f32 of all dense parameters, in layer order; no header
//   sparse   rows in any order; no header, no count: file size / row size
//              Distributed        key, f32 vec[embedding_vec_size]
//              Localized, OneHot  key, slot_id, f32 vec[embedding_vec_size]
//            v2.1         key i64, slot_id i64
//            v2.2         key and slot_id as wide as the keys of the data set
//            v2.2.1-v3.0  key as wide as the keys of the data set, slot_id u64
//            v3.1         a folder: `key` i64, `slot_id` u64 (not for Distributed), `emb_vector` f32
//   states   optimizer states (v3.0), one kind after the other, for example Adam's m, then v; f32, or f16 for runs in
//            mixed precision. The dense states file has the states of each weight in the dense file, the sparse states
//            file those of each row in the sparse file. HugeCTR's sparse states file instead has a whole table in the
//            order of row numbers, which HugeCTR's model files do not contain
//   .ntp.json   {"layers": [{"type": "BatchNorm", "mean": [...], "var": [...]}, ...]}; ours add "name" and more numbers

// File names in a version 3.1 folder.
inline constexpr const char *kFolderKeys = "key", *kFolderSlots = "slot_id", *kFolderVectors = "emb_vector";

/// `<prefix>_opt_dense_<iteration>.model` and `<prefix><embedding>_opt_sparse_<iteration>.model`
inline std::string dense_opt_states_name(const std::string& prefix, int64_t iteration) {
  return prefix + "_opt_dense_" + std::to_string(iteration) + ".model";
}
inline std::string sparse_opt_states_name(const std::string& prefix, int64_t embedding, int64_t iteration) {
  return prefix + std::to_string(embedding) + "_opt_sparse_" + std::to_string(iteration) + ".model";
}
/// `<prefix>_dense_<iteration>.model`
inline std::string dense_model_name(const std::string& prefix, int64_t iteration) {
  return prefix + "_dense_" + std::to_string(iteration) + ".model";
}
/// `<prefix><embedding>_sparse_<iteration>.model`, without a separator between prefix and number
inline std::string sparse_model_name(const std::string& prefix, int64_t embedding, int64_t iteration) {
  return prefix + std::to_string(embedding) + "_sparse_" + std::to_string(iteration) + ".model";
}

// ---- Manifest of model files (ours): <prefix>_model_<iteration>.json -----------------------------------------------
//
//   {"schema": 1, "run": id, "iteration": n, "updates": n, "tables": [{"name", "embedding_vec_size", "identity"}, ...],
//    "files": [{"name", "bytes", "crc32"}, ...], "data": {...}, "config": {...}, "crc32": "..."}
//
// The manifest is written last, so a set of model files with a valid manifest is complete. "name" excludes the prefix,
// so the files can be moved, and renamed to another prefix. "updates" counts the steps that were not skipped (Adam's
// t). "tables" has the order of the table numbers in file names. "data": number of training files, their bytes, and a
// hash of their sizes. The last "crc32" covers the text before it.

inline constexpr int64_t kModelManifestSchema = 1;
/// The folder of a delta, `<prefix>_delta_<iteration>`. The names of the delta's files begin with the path of this
/// folder.
inline std::string delta_name(const std::string& prefix, int64_t iteration) {
  return prefix + "_delta_" + std::to_string(iteration);
}
/// `<embedding>_removed_<iteration>.keys`: for each removed key, int64 slot (0 if rows belong to keys alone) and int64
/// key, sorted by (slot, key).
inline std::string removed_keys_name(const std::string& prefix, int64_t embedding, int64_t iteration) {
  return prefix + std::to_string(embedding) + "_removed_" + std::to_string(iteration) + ".keys";
}
/// `<prefix>_model_<iteration>.json`
inline std::string model_manifest_name(const std::string& prefix, std::string_view iteration) {
  return prefix + "_model_" + std::string(iteration) + ".json";
}

// ---- Access statistics of a table's rows (ours): <sparse model file>.marks -----------------------------------------
//
//   file = head RowAccess[rows], for a table that records when, or how often, the keys of its rows occurred. Sorted by
//   (slot, key), as this program writes the model file. head = {"schema": 1, "steps": n, "rows": n, "marks":
//   ["last_seen", "occurrences"]} as a line of kAccessStatsHeadBytes, padded with spaces. "steps": training steps
//   that the statistics have counted. "marks": the recorded fields of RowAccess; a field that is not listed is 0.

struct RowAccess {
  int64_t key = 0;
  int32_t slot = 0;          ///< 0 if the key alone identifies a row
  uint32_t last_seen = 0;    ///< step of the last batch with the key, counted from 0, modulo 2^32
  uint64_t occurrences = 0;  ///< occurrences of the key since its row was added, saturating at 2^32 - 1
};
static_assert(sizeof(RowAccess) == 24);

inline constexpr int64_t kAccessStatsSchema = 1;
inline constexpr size_t kAccessStatsHeadBytes = 256;
inline constexpr const char* kAccessStatsEnding = ".marks";

// ---- Ground truth of a generated data set (ours): <eval_source>.truth.json -----------------------------------------
//
//   {"schema": 1, "best": {"AUC": x, "AverageLoss": x, "calibration": x}, "samples": n, "positive_share": x,
//    "made_with": {...}}
//
// The metrics of a model that knows the hidden probabilities, on the evaluation samples. With several labels the
// metrics are means over the labels, and "labels": [{"AUC": x, "AverageLoss": x, "calibration": x, "positive_share":
// x}, ...] has the metrics of each label.

inline constexpr int64_t kTruthSchema = 1;

}  // namespace hctr::formats
