// Random numbers identical to those of numpy.random.RandomState(seed).
// Matsumoto and Nishimura 1998, the Mersenne Twister; normal numbers by Marsaglia's polar method.

const [LENGTH, MIDDLE] = [624, 397];

export class RandomState {
  constructor(seed) {
    this.words = new Uint32Array(LENGTH);
    this.words[0] = seed >>> 0;
    for (let i = 1; i < LENGTH; i++) {
      const before = this.words[i - 1] ^ (this.words[i - 1] >>> 30);
      this.words[i] = Math.imul(1812433253, before) + i;
    }
    this.next = LENGTH;
    this.kept = null; // the second of a pair of normal numbers
  }

  word() {
    if (this.next === LENGTH) this.twist();
    let word = this.words[this.next++];
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c5680;
    word ^= (word << 15) & 0xefc60000;
    return (word ^ (word >>> 18)) >>> 0;
  }

  twist() {
    const words = this.words;
    for (let i = 0; i < LENGTH; i++) {
      const mixed = (words[i] & 0x80000000) | (words[(i + 1) % LENGTH] & 0x7fffffff);
      words[i] = words[(i + MIDDLE) % LENGTH] ^ (mixed >>> 1) ^ (mixed & 1 ? 0x9908b0df : 0);
    }
    this.next = 0;
  }

  // Uniform in [0, 1), with 53 bits.
  uniform() {
    const [high, low] = [this.word() >>> 5, this.word() >>> 6];
    return (high * 67108864 + low) / 9007199254740992;
  }

  normal() {
    if (this.kept !== null) {
      const kept = this.kept;
      this.kept = null;
      return kept;
    }
    let x, y, square;
    do {
      x = 2 * this.uniform() - 1;
      y = 2 * this.uniform() - 1;
      square = x * x + y * y;
    } while (square >= 1 || square === 0);
    const stretch = Math.sqrt((-2 * Math.log(square)) / square);
    this.kept = stretch * x;
    return stretch * y;
  }

  vector(size) {
    return Array.from({ length: size }, () => this.normal());
  }

  matrix(rows, columns) {
    return Array.from({ length: rows }, () => this.vector(columns));
  }

  // A permutation of 0 to count - 1.
  order(count) {
    const places = Array.from({ length: count }, (_, i) => ({ i, at: this.uniform() }));
    return places.sort((a, b) => a.at - b.at).map((place) => place.i);
  }
}
