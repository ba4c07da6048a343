"""Statements that a source decides: dates, published scores and laws, designs of other systems."""

from regardant.checks.verify.check import COURSE, MISSAOUI, PITIE, WALKTHROUGH, WANG, Claim

STATEMENTS = (
    Claim(
        "E-07",
        "Where attention began",
        PITIE,
        lecture="in captioning of images, then moved to sentences",
        true={},
        verdict="wrong",
        note="Bahdanau's translator is of September 2014, Xu's captioning of February 2015.",
    ).cited("Bahdanau et al., https://arxiv.org/abs/1409.0473; Xu et al., https://arxiv.org/abs/1502.03044"),
    Claim(
        "E-14",
        "The decoder state used as the query",
        f"{COURSE}; {MISSAOUI}; {WANG}",
        lecture="s_{t-1}, s_t and h_t; some formulas without √d_k",
        true={},
        verdict="partly",
        note="Bahdanau's score uses s_{t-1}, Luong's the current state. The Transformer divides by √d_k.",
    ).cited(
        "Bahdanau et al., https://arxiv.org/abs/1409.0473, equation 6 and appendix A.1.2; Luong et al., "
        "https://arxiv.org/abs/1508.04025, section 3; Vaswani et al., https://arxiv.org/abs/1706.03762, equation 1"
    ),
    Claim(
        "E-26",
        "CLIP and one sequence",
        COURSE,
        lecture="CLIP concatenates image and text tokens",
        true={},
        verdict="wrong",
        note="CLIP is two encoders and a contrastive loss (recipe digits-clip). DALL-E concatenates (recipe "
        "digit-streams).",
    ).cited("Radford et al., https://arxiv.org/abs/2103.00020; Ramesh et al., https://arxiv.org/abs/2102.12092"),
    Claim(
        "E-36",
        "Architectures that follow a power law",
        COURSE,
        lecture="log(loss) = -α log(N) + C holds for Transformers, not for CNNs and RNNs",
        true={},
        verdict="partly",
        note="The losses of LSTMs and CNNs have followed power laws too, in the amount of data. Measure yours with "
        "`regardant scale`.",
    ).cited("Hestness et al. 2017, https://arxiv.org/abs/1712.00409"),
    Claim(
        "E-40",
        "Settings of the base and big model",
        COURSE,
        lecture="max_seq_len 512; dropout .3",
        true={},
        verdict="partly",
        note="Sinusoids have no maximum length. The big model's dropout is .3 for English-German and .1 for "
        "English-French.",
    ).cited("Vaswani et al., https://arxiv.org/abs/1706.03762, sections 3.5, 5.4 and 6.1, table 3"),
    Claim(
        "E-50",
        "BLEU of the big model, English-French",
        f"{WALKTHROUGH}; {MISSAOUI}",
        lecture="41.0 in one lecture, 41.8 in the other",
        true={},
        verdict="partly",
        note="The abstract and table 2 say 41.8. 41.0 is older text of section 6.1.",
    ).cited("Vaswani et al., https://arxiv.org/abs/1706.03762v7, abstract, table 2 and section 6.1"),
    Claim(
        "E-56",
        "Numbers of the parts of the course",
        COURSE,
        lecture="the roadmap lists 7 parts; headings are numbered 1, 2, 5, 3, 5, 6",
        true={},
        verdict="partly",
        note="This project's pages have an order of their own.",
    ).cited("the lecture's roadmap and its headings"),
)
