/**
 * Colours that stay apart for colour-blind eyes (after Okabe and Ito, and the viridis scale), and patterns beside them:
 * what is told by colour is told by hatching, level or sign as well.
 */

export const GANG_COLOURS = {
  light: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#b8a000"],
  dark: ["#4fa3e0", "#f0b43c", "#2fc49a", "#e29bc4", "#8fd0f7", "#ef7d3c", "#b79bdc", "#e0d040"],
};
export const PATTERNS = 4; // plain, rising lines, falling lines, dots

/** Yellow-green to dark blue; the dark theme runs the other way, so that more is always further from the ground. */
const SCALE = ["#fde725", "#b5de2b", "#6ece58", "#35b779", "#1f9e89", "#26828e", "#31688e", "#3e4989", "#440154"];

/** @param {number} share 0 to 1 @param {boolean} dark */
export function scale(share, dark) {
  const at = Math.max(0, Math.min(1, dark ? 1 - share : share)) * (SCALE.length - 1);
  return SCALE[Math.round(at)];
}

export const SCALE_STEPS = SCALE.length;

export const HEALTH_SIGNS = /** @type {Record<string, string>} */ ({
  "": "", "cordoned": "–", "not ready": "×", "under pressure": "!",
});

/** @param {string} health @param {boolean} dark */
export function healthColour(health, dark) {
  if (health === "not ready") return dark ? "#ef7d3c" : "#d55e00";
  if (health === "cordoned") return dark ? "#9aa7b5" : "#6b7785";
  if (health === "under pressure") return dark ? "#f0b43c" : "#e69f00";
  return dark ? "#2fc49a" : "#009e73";
}

/** @returns {boolean} */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
