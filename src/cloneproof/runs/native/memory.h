// Arrays whose memory goes with them, in plain C++: with nothing of the C++ library a compiler of C is enough to link,
// and ziglang has no library to build first, which takes it minutes.
#pragma once
#include <stdlib.h>
#include "portable.h"

struct At {
    void* memory;
};
inline void* operator new(size_t, At at) noexcept { return at.memory; }

template <class T> T smaller(T a, T b) { return b < a ? b : a; }
template <class T> T larger(T a, T b) { return a < b ? b : a; }

DEVICE void* memory_for(i64 count, u64 each) {
    void* memory = calloc(count > 0 ? (size_t)count : 1, each);
    if (!memory) abort();
    return memory;
}

// Elements begin as their constructors leave them, or as zeros.
template <class T> class Array {
    T* elements = nullptr;
    i64 count = 0, room = 0;

    void make_room(i64 wanted) {
        if (wanted <= room) return;
        const i64 more = larger(wanted, 2 * room);
        T* moved = (T*)memory_for(more, sizeof(T));
        for (i64 k = 0; k < count; ++k) new (At{moved + k}) T((T&&)elements[k]), elements[k].~T();
        free(elements);
        elements = moved, room = more;
    }

public:
    Array() {}
    explicit Array(i64 wanted) { resize(wanted); }
    Array(Array&& other) : elements(other.elements), count(other.count), room(other.room) {
        other.elements = nullptr, other.count = other.room = 0;
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    ~Array() {
        for (i64 k = 0; k < count; ++k) elements[k].~T();
        free(elements);
    }

    void resize(i64 wanted) {
        make_room(wanted);
        for (; count < wanted; ++count) new (At{elements + count}) T();
        for (; count > wanted; --count) elements[count - 1].~T();
    }
    void assign(i64 wanted, const T& value) {
        resize(wanted);
        fill(value);
    }
    void fill(const T& value) {
        for (i64 k = 0; k < count; ++k) elements[k] = value;
    }
    void push(T&& value) {
        make_room(count + 1);
        new (At{elements + count++}) T((T&&)value);
    }
    void clear() { resize(0); }

    i64 size() const { return count; }
    T* data() { return elements; }
    T& operator[](i64 k) { return elements[k]; }
    const T& operator[](i64 k) const { return elements[k]; }
    T* begin() { return elements; }
    T* end() { return elements + count; }
    const T* begin() const { return elements; }
    const T* end() const { return elements + count; }
};
