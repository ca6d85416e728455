// The counter-based generator of cloneproof._lib.randomness, and the streams of a run, whose numbers are those of
// evaluation/reference.py and mechanisms/streams.py (a test compares them).
#pragma once
#include "portable.h"

TABLE u64 GOLDEN = 0x9E3779B97F4A7C15ull;

DEVICE u64 finalised(u64 x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

DEVICE u64 word(u64 stream, u64 index) { return finalised(stream + 0x9E3779B97F4A7C15ull * (index + 1)); }

// The 52 bits behind uniform(stream, index) where x = stream + GOLDEN (index + 1).
DEVICE u64 mixed(u64 x) { return finalised(x) >> 12; }

// w / 2^12 + 1/2 without its fraction's last bits: the bits of 2^52 + w / 2^12, less 2^52 - 1/2. No step rounds.
DEVICE double half_past(u64 w) { return from_bits(0x4330000000000000ull | w >> 12) - 4503599627370495.5; }

DEVICE double from_word(u64 w) { return half_past(w) * 2.220446049250313e-16; }  // 2^-52

DEVICE double uniform(u64 stream, u64 index) { return from_word(word(stream, index)); }

// The whole number that `mixed` stays below exactly where uniform < mean.
DEVICE u64 threshold(double mean) { return (u64)(i64)ceil(mean * 4503599627370496.0 - 0.5); }

enum { MEANS_STREAM, TAPE_STREAM, SESSION_STREAM, DELAYS_STREAM };  // of a run
enum { STATE_STREAM, COINS_STREAM, END_STREAM };               // of its session
enum { LEVELS_STREAM };                                        // of the session's state
enum { EXPLORE_STREAM, TIE_STREAM, COIN_STREAM, DRAW_STREAM };  // of a level
enum { SLOT_STREAM = 5 };                                      // of a level of slots: the arm that each slot holds
enum { ORDER_STREAM };                                         // of a timetable of slots

struct RunStreams {
    u64 tapes, levels, coins;
};

DEVICE RunStreams streams_of(u64 run_stream) {
    u64 session = word(0, word(run_stream, SESSION_STREAM) >> 1);
    u64 state = word(session, STATE_STREAM);
    RunStreams streams = {word(run_stream, TAPE_STREAM), word(state, LEVELS_STREAM), word(session, COINS_STREAM)};
    return streams;
}

DEVICE u64 level_stream(u64 levels, u64 version, u64 key) { return word(word(levels, version), key); }
