// Small figures as SVG, in the colours of the reports; widths are those of the place, so that text is never scaled.

export const BLUE = "#0072b2", ORANGE = "#b3400f", GREY = "#8a92a1", RULE = "#e3e6ec";
const NAMESPACE = "http://www.w3.org/2000/svg";

export function element(tag, attributes = {}, text = null) {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  return made;
}

function canvas(place, height, label) {
  const width = Math.max(260, Math.floor(place.clientWidth));
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  return { svg, width };
}

function put(place, svg, caption) {
  const words = document.createElement("figcaption");
  words.textContent = caption;
  place.replaceChildren(svg, words);
}

// A name that does not fit is cut, and told whole in its tooltip.
function named(svg, x, y, text, room, quiet = false) {
  const most = Math.max(4, Math.floor(room / 7));
  const label = element("text", { x, y, class: quiet ? "quiet" : "" }, text.length > most ? text.slice(0, most - 1) + "…" : text);
  label.append(element("title", {}, text));
  svg.append(label);
}

function ticks(low, high) {
  const rough = (high - low) / 4, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((part) => part * size).find((one) => one >= rough * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at++) found.push(at * step);
  return found;
}

const short = (number) => String(Number(number.toPrecision(6)));

// rows: {name, inner (an arm), mean, low, high, tip}
export function dots(place, rows, caption, axis) {
  const line = 24, top = 4, height = top + rows.length * line + 40;
  const { svg, width } = canvas(place, height, caption);
  const left = Math.min(190, width * 0.36), right = width - 12;
  const known = rows.filter((row) => row.mean !== null);
  const low = Math.min(0, ...known.map((row) => row.low)), high = Math.max(1, ...known.map((row) => row.high));
  const x = (value) => left + ((value - low) / (high - low)) * (right - left);
  for (const tick of ticks(low, high)) {
    svg.append(element("line", { x1: x(tick), x2: x(tick), y1: top, y2: top + rows.length * line, stroke: RULE }));
    svg.append(element("text", { x: x(tick), y: top + rows.length * line + 16, "text-anchor": "middle", class: "quiet" }, short(tick)));
  }
  svg.append(element("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle", class: "quiet" }, axis));
  rows.forEach((row, number) => {
    const y = top + number * line + line / 2;
    named(svg, row.inner ? 14 : 0, y + 4, row.name, left - 24, row.inner);
    if (row.mean === null) {
      svg.append(element("text", { x: left, y: y + 4, class: "quiet" }, "no reward yet"));
      return;
    }
    const colour = row.inner ? GREY : BLUE;
    const group = element("g");
    group.append(element("title", {}, row.tip));
    group.append(element("line", { x1: x(row.low), x2: x(row.high), y1: y, y2: y, stroke: colour, "stroke-width": row.inner ? 2 : 4, "stroke-linecap": "round", "stroke-opacity": 0.55 }));
    group.append(element("circle", { cx: x(row.mean), cy: y, r: row.inner ? 3.5 : 5, fill: colour }));
    svg.append(group);
  });
  put(place, svg, caption);
}

// rows: {name, value, text, low, high}; a bar from 0, with an error bar where there is one
export function bars(place, rows, caption, axis = null) {
  const line = 30, top = 2, height = top + rows.length * line + (axis ? 20 : 0);
  const { svg, width } = canvas(place, height, caption);
  const left = Math.min(170, width * 0.34), room = 118, right = width - room;
  const low = Math.min(0, ...rows.map((row) => row.low ?? row.value));
  const high = Math.max(1e-12, ...rows.map((row) => row.high ?? row.value), low < 0 ? 0 : 1e-12);
  const x = (value) => left + ((value - low) / (high - low)) * (right - left);
  rows.forEach((row, number) => {
    const y = top + number * line + line / 2;
    named(svg, 0, y + 4, row.name, left - 8);
    const [from, to] = row.value < 0 ? [x(row.value), x(0)] : [x(0), x(row.value)];
    svg.append(element("rect", { x: from, y: y - 8, width: Math.max(1, to - from), height: 16, rx: 2, fill: row.colour ?? BLUE }));
    if (row.high > row.low && x(row.high) - x(row.low) > 2)
      svg.append(element("line", { x1: x(row.low), x2: x(row.high), y1: y, y2: y, stroke: "#1d2433", "stroke-width": 1.5 }));
    const end = Math.max(x(Math.max(0, row.value)), x(row.high ?? row.value));
    svg.append(element("text", { x: end + 8, y: y + 4 }, row.text));
  });
  svg.append(element("line", { x1: x(0), x2: x(0), y1: top, y2: top + rows.length * line, stroke: GREY }));
  if (axis) svg.append(element("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle", class: "quiet" }, axis));
  put(place, svg, caption);
}
