(* Reads cases, one a line, and prints who is served in each round: "agent:arm:trial .. agent:arm:award"; with places,
   who is shown on each page, place by place: "agent:arm:award,agent:arm:waiting,agent:arm:trial ..".
   A case: pulls draws threshold fresh rounds agents places (0: no pages), the arms of each agent, the weight of each arm
   of each agent, 64-bit words (one of each agent for the order, one for the lot, draws + 1 of each agent, one for each
   pull of each draw of each agent; with places, one of each agent for the turns and one for each page of each agent), and
   the rewards of all tests, slot by slot. What the loop takes as given is made of words here, and not taken from the
   session. *)
let () =
  try
    while true do
      let given = Array.of_list (String.split_on_char ' ' (input_line stdin)) in
      let number k = int_of_string given.(k) and word k = Int64.of_string ("0u" ^ given.(k)) in
      let uniform k = (Int64.to_float (Int64.shift_right_logical (word k) 12) +. 0.5) *. ldexp 1.0 (-52) in
      let pulls, draws, rounds, agents, places = number 0, number 1, number 4, number 5, number 6 in
      let arms = 7 in
      let before agent = List.fold_left (+) 0 (List.init agent (fun i -> number (arms + i))) in
      let weights = arms + agents in
      let orders = weights + before agents in
      let lots = orders + agents in
      let drawn = lots + 1 in
      let coins = drawn + agents * (draws + 1) in
      let turning = coins + agents * draws * pulls in
      let rewards = turning + (if places = 0 then 0 else agents * (1 + rounds)) in
      let sorted words =
        let by_word i j = Int64.unsigned_compare (word (words + i)) (word (words + j)) in
        List.sort by_word (List.init agents Fun.id) in
      let order = sorted orders in
      let lot = List.nth order (Int64.to_int (Int64.unsigned_rem (word lots) (Int64.of_int agents))) in
      let weight agent arm = number (weights + before agent + arm) in
      let rec arm_at agent arm place =   (* in the list in which each arm stands as often as its weight *)
        if place < weight agent arm then arm else arm_at agent (arm + 1) (place - weight agent arm) in
      let arm_of agent word =
        let listed = List.fold_left (+) 0 (List.init (number (arms + agent)) (weight agent)) in
        arm_at agent 0 (int_of_float (uniform word *. float_of_int listed)) in
      let holds agent draw = arm_of agent (drawn + agent * (draws + 1) + draw) in
      let coin slot pull =
        let agent, draw = List.nth order (slot mod agents), slot / agents in
        uniform (coins + (agent * draws + draw) * pulls + pull) < float_of_string given.(rewards + slot * pulls + pull) in
      let shown agent arm phase = Printf.sprintf "%d:%d:%s" agent arm phase in
      let round t =
        let serve = Loop_that_runs.serve pulls draws (number 2) (number 3 = 1) order lot coin in
        let agent, arm = Loop_that_runs.served pulls draws (number 2) (number 3 = 1) order lot coin holds t in
        shown agent arm (if snd (serve t) = None then "award" else "trial") in
      let of_slot slot = let agent = List.nth order (slot mod agents) in shown agent (holds agent (slot / agents)) in
      let page t =
        let place = function
          | Loop_that_runs.Best slot -> of_slot slot "award"
          | Loop_that_runs.Turn agent -> shown agent (arm_of agent (turning + agents + agent * rounds + t)) "waiting"
          | Loop_that_runs.Trial (slot, _) -> of_slot slot "trial" in
        String.concat "," (List.map place (Loop_that_runs.page pulls draws order (sorted turning) places coin t)) in
      print_endline (String.concat " " (List.init rounds (if places = 0 then round else page)))
    done
  with End_of_file -> ()
