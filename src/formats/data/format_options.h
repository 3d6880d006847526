// Options of a Data layer that are specific to one data format.
#pragma once

#include <any>
#include <utility>
#include <vector>

namespace hctr {

/// Stores the format-specific objects of a Data layer ("csv", "parquet") by C++ type, at most one per type.
class FormatOptions {
 public:
  /// The object of type T; null if the config has none.
  template <class T>
  const T* find() const {
    for (const std::any& given : given_)
      if (const T* options = std::any_cast<T>(&given)) return options;
    return nullptr;
  }
  /// The object of type T, or a default one.
  template <class T>
  const T& get() const {
    static const T defaults{};
    const T* given = find<T>();
    return given ? *given : defaults;
  }
  /// The object of type T. Adds a default one if missing.
  template <class T>
  T& edit() {
    if (const T* given = find<T>()) return const_cast<T&>(*given);
    return std::any_cast<T&>(given_.emplace_back(T{}));
  }

 private:
  std::vector<std::any> given_;
};

}  // namespace hctr
